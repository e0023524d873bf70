//! The kernel: request and facts in, refusals and findings out.
//!
//! The same function speaks at the command line, before a dispatch and, later, in hooks. Hooks are optional; this is
//! where an unsafe request ends (spec 003 §0.3.2).

mod hard;
mod soft;

use serde::Serialize;

use super::finding::{Disposition, Finding, fingerprint};
use super::mode::Mode;
use super::preflight::Preflight;
use super::refusal::{Refusal, RefusedError};

/// What policy says of a request. No refusal means go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Ruling {
    /// Why not, the weightiest first.
    pub refusals: Vec<Refusal>,
    /// Durable remarks, also those that refuse.
    pub findings: Vec<Finding>,
}

impl Ruling {
    /// Returns the refusals as an error, if there are any.
    pub fn refused(&self) -> Option<RefusedError> {
        RefusedError::of(&self.refusals)
    }

    /// Returns the findings that people are to see.
    pub fn shown(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.disposition != Disposition::Recorded)
    }
}

/// Judges a request. Hard refusals come in every mode; findings weigh what their mode says.
pub fn evaluate(preflight: &Preflight) -> Ruling {
    let mut ruling = Ruling { refusals: hard::refusals(preflight), findings: Vec::new() };
    for remark in soft::remarks(preflight) {
        let disposition = match preflight.modes.of(remark.kind) {
            Mode::Off => continue,
            Mode::Shadow => Disposition::Recorded,
            Mode::Warn => Disposition::Shown,
            Mode::Enforce => Disposition::Refused,
        };
        if disposition == Disposition::Refused {
            ruling.refusals.push(remark.refusal(preflight));
        }
        ruling.findings.push(Finding {
            fingerprint: fingerprint(remark.kind, &preflight.bead, &remark.subject),
            policy_version: super::POLICY_VERSION.to_owned(),
            kind: remark.kind,
            bead: preflight.bead.clone(),
            subject: remark.subject,
            message: remark.message,
            advice: remark.advice,
            evidence: remark.evidence,
            blocked_by: remark.blocked_by,
            disposition,
        });
    }
    ruling
}
