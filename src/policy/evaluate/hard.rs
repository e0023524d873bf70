//! Refusals that hold in every mode: bd itself would let all of these through.

use crate::failure::{Failure, FailureKind};
use crate::ids::ChainId;
use crate::ports::Bead;

use crate::policy::preflight::{Preflight, RootFacts};
use crate::policy::refusal::Refusal;

pub(super) fn refusals(preflight: &Preflight) -> Vec<Refusal> {
    let Some(root) = &preflight.root else {
        let mut refusal = refuse(preflight, "bead_not_found", "there is no such bead", "list the beads: `bd list`");
        refusal.kind = FailureKind::NotFound;
        refusal.diagnose_command = "bd list".to_owned();
        return vec![refusal];
    };
    // A step, a molecule or an epic is the wrong bead: what else may be said of it would only distract.
    if let Some(refusal) = wrong_bead(preflight, &root.bead) {
        return vec![refusal];
    }
    let bead = &root.bead;
    [
        status(preflight, bead),
        draft(preflight, bead),
        other_chain(preflight),
        held(preflight, bead),
        open_children(preflight, bead),
        blocked(preflight, bead),
        contract(preflight, root),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn refuse(preflight: &Preflight, error_code: &'static str, why: &str, next: &str) -> Refusal {
    let bead = &preflight.bead;
    Refusal {
        error_code,
        kind: FailureKind::Refused,
        message: format!("run {} on bead {bead}: {why}", preflight.formula),
        blocked_by: Vec::new(),
        next_safe_action: next.to_owned(),
        diagnose_command: format!("bd show {bead}"),
    }
}

fn wrong_bead(preflight: &Preflight, bead: &Bead) -> Option<Refusal> {
    if bead.labels.iter().any(|label| label == "kind:step") {
        return Some(step(preflight, bead));
    }
    match bead.issue_type.as_str() {
        "epic" => Some(refuse(
            preflight,
            "bead_is_epic",
            "it is an epic, and a chain works on one bead",
            &format!("run the chain on one of its children: `bd children {}`", preflight.bead),
        )),
        "molecule" => {
            let mut refusal = refuse(
                preflight,
                "bead_is_molecule",
                "it is a molecule, which holds the steps of a chain",
                &format!("see the chain: `sp chain show {}`", preflight.bead),
            );
            refusal.blocked_by.extend(root_of(bead));
            Some(refusal)
        }
        "gate" | "message" | "event" => Some(refuse(
            preflight,
            "bead_is_internal",
            &format!("it is a {}, which holds no work", bead.issue_type),
            "name a bead that holds a contract: `bd list`",
        )),
        _ => None,
    }
}

fn step(preflight: &Preflight, bead: &Bead) -> Refusal {
    let root = root_of(bead);
    let (why, next) = match &root {
        Some(root) => (
            format!("it is a step of the chain on bead {root}"),
            format!("name the root: `sp chain run {} --bead {root}`", preflight.formula),
        ),
        None => ("it is a step of a chain".to_owned(), "name the root bead of its chain".to_owned()),
    };
    let mut refusal = refuse(preflight, "bead_is_step", &why, &next);
    refusal.blocked_by.extend(root);
    refusal
}

fn root_of(bead: &Bead) -> Option<String> {
    bead.metadata.get("sp_bead").and_then(|value| value.as_str()).map(str::to_owned)
}

fn status(preflight: &Preflight, bead: &Bead) -> Option<Refusal> {
    let (code, why, next) = match bead.status.as_str() {
        "open" | "in_progress" => return None,
        "closed" => ("bead_closed", "it is closed", "make a new bead, or reopen this one if its work is not done"),
        "deferred" => ("bead_deferred", "it is deferred", "take it up when its time has come: `bd undefer`"),
        "blocked" => ("bead_status_blocked", "its status is blocked", "clear up what blocks it, then set it to open"),
        "hooked" => ("bead_hooked", "it is hooked to an agent", "wait for that agent, or choose another bead"),
        "pinned" => ("bead_pinned", "it is pinned", "choose another bead: a pinned one is never worked on"),
        _ => ("bead_status_unknown", "its status is none that sp knows", "set it to open if it is to be worked on"),
    };
    let why = if code == "bead_status_unknown" { format!("{why}: {}", bead.status) } else { why.to_owned() };
    Some(refuse(preflight, code, &why, next))
}

fn draft(preflight: &Preflight, bead: &Bead) -> Option<Refusal> {
    bead.labels.iter().any(|label| label == "contract:draft").then(|| {
        refuse(
            preflight,
            "contract_draft",
            "its contract is a draft",
            "finish the contract, then take the label contract:draft off the bead",
        )
    })
}

/// The same formula attaches; another one would be a second writer on the same contract.
fn other_chain(preflight: &Preflight) -> Option<Refusal> {
    let other =
        preflight.live_chains.iter().find(|live| live.bead == preflight.bead && live.formula != preflight.formula)?;
    let mut refusal = refuse(
        preflight,
        "bead_in_other_chain",
        &format!("chain {} of formula {} is live on it", other.chain, other.formula),
        &format!("see that chain: `sp chain show {}`", other.chain),
    );
    refusal.kind = FailureKind::Contested;
    refusal.blocked_by.push(other.chain.to_string());
    refusal.diagnose_command = format!("sp chain show {}", other.chain);
    Some(refusal)
}

fn held(preflight: &Preflight, bead: &Bead) -> Option<Refusal> {
    // A closed bead keeps its last holder.
    let holder = bead.assignee.as_deref().filter(|holder| !holder.is_empty() && bead.status != "closed")?;
    let ours = |chain: &ChainId| {
        holder.strip_prefix("sp/").is_some_and(|rest| {
            rest == chain.as_str() || rest.strip_prefix(chain.as_str()).is_some_and(|tail| tail.starts_with('/'))
        })
    };
    let on_bead = preflight.live_chains.iter().filter(|live| live.bead == preflight.bead).map(|live| &live.chain);
    if preflight.chain.iter().chain(on_bead).any(ours) {
        return None;
    }
    let next = match holder.strip_prefix("sp/").and_then(|rest| rest.split('/').next()) {
        Some(chain) => format!("see that chain: `sp chain show {chain}`"),
        None => format!("ask {holder}, or choose a bead that nobody holds: `bd ready -u`"),
    };
    let mut refusal = refuse(preflight, "bead_held", &format!("{holder} holds it"), &next);
    refusal.kind = FailureKind::Contested;
    refusal.blocked_by.push(holder.to_owned());
    Some(refusal)
}

fn open_children(preflight: &Preflight, bead: &Bead) -> Option<Refusal> {
    if bead.open_children.is_empty() {
        return None;
    }
    let mut refusal = refuse(
        preflight,
        "bead_has_open_children",
        &format!("it has open children: {}", bead.open_children.join(", ")),
        "run the chain on one of the children, or finish them first",
    );
    refusal.blocked_by.clone_from(&bead.open_children);
    Some(refusal)
}

fn blocked(preflight: &Preflight, bead: &Bead) -> Option<Refusal> {
    // A chain blocks its own root: that is how the root waits for it.
    let own = preflight.chain.as_ref().map(|chain| chain.as_str());
    let live =
        |id: &str| preflight.live_chains.iter().any(|live| live.bead == preflight.bead && live.chain.as_str() == id);
    let blockers: Vec<String> =
        bead.open_blockers.iter().filter(|id| Some(id.as_str()) != own && !live(id)).cloned().collect();
    if blockers.is_empty() {
        return None;
    }
    let mut refusal = refuse(
        preflight,
        "bead_blocked",
        &format!("it waits for {}", blockers.join(", ")),
        &format!("finish {} first", blockers.join(", ")),
    );
    refusal.blocked_by = blockers;
    Some(refusal)
}

fn contract(preflight: &Preflight, root: &RootFacts) -> Option<Refusal> {
    let error = root.contract.as_ref().err()?;
    let failure = Failure::from(error.clone());
    Some(refuse(preflight, failure.error_code, &failure.message, &failure.next_safe_action))
}
