//! Before anything is created: facts, policy, formula, shape.

use std::collections::BTreeMap;

use ractor::rpc::CallResult;
use serde::Serialize;

use super::adopt::{Unrecorded, recovery_remark};
use super::builder::{Ground, Orchestrator};
use super::error::OrchestratorError;
use super::open::{covered, new_chain};
use super::request::{RunRequest, kept_scope};
use crate::actors::PolicyMsg;
use crate::chain::contract::{Contract, ContractView, parse as parse_contract};
use crate::chain::formula::{load as load_formula, resolve_named};
use crate::chain::graph::{compile, critical_path, waves};
use crate::chain::machine::Scrutinies;
use crate::chain::pour::{Origin, plan};
use crate::chain::scrutiny::{Assessment, Scrutiny, assess, stated};
use crate::chain::shape::{Class, Shape};
use crate::ids::ChainId;
use crate::policy::{LiveChain, Preflight, RootFacts, Ruling};
use crate::ports::{Bead, RepoFacts, TrackerError, TrackerInfo};
use crate::rehearsal::{Script, load};
use crate::specialist::Tier;
use crate::storage::{Reader, StoreError};

/// One step of a composition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepPlan {
    /// Step.
    pub step: String,
    /// Its specialist.
    pub role: String,
    /// What the specialist may do.
    pub tier: Tier,
    /// Step or gate.
    pub class: Class,
    /// Steps that it needs.
    pub needs: Vec<String>,
    /// Whether a person must accept explicitly to pass it by hand.
    pub mandatory: bool,
}

/// What a run would be: `--dry-run` shows it, and nothing is written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Composition {
    /// Formula.
    pub formula: String,
    /// Contract bead.
    pub root_bead_id: String,
    /// Its title.
    pub title: String,
    /// Variables after defaults.
    pub vars: BTreeMap<String, String>,
    /// Scrutiny and what raised it.
    pub scrutiny: Assessment,
    /// The contract as it is understood.
    pub contract: Option<ContractView>,
    /// Ref that the work would be based on.
    pub base_ref: String,
    /// Its commit.
    pub base_sha: String,
    /// Branch of the main checkout's uncommitted paths that the worktree would not have.
    pub dirty_paths: usize,
    /// Steps in order.
    pub steps: Vec<StepPlan>,
    /// Steps that could run at the same time.
    pub waves: Vec<Vec<String>>,
    /// The longest way through.
    pub critical_path: Vec<String>,
    /// Remarks of policy that people are to see.
    pub findings: Vec<String>,
}

/// A composition with all that is needed to begin it.
pub(super) struct Composed {
    /// The id that the chain gets, or has.
    pub chain: ChainId,
    pub composition: Composition,
    pub shape: Shape,
    pub root: Bead,
    pub ruling: Ruling,
    pub scope: Vec<String>,
    pub scrutiny: Scrutinies,
}

impl Orchestrator {
    /// Composes a run without creating anything.
    pub async fn compose(&self, request: &RunRequest) -> Result<Composition, OrchestratorError> {
        let script = self.read_files(request)?;
        let info = self.ground.tracker.probe().await?;
        let found = self.unrecorded(request).await?;
        let mut composed = self.composed(request, &info, found.as_ref()).await?;
        if let Some(found) = &found {
            self.recover(&request.bead, found, &composed).await?;
            composed.composition.findings.push(recovery_remark(&found.chain));
        }
        if let (Some((script, _)), Some(file)) = (&script, &request.rehearse) {
            covered(script, &composed.shape, file)?;
        }
        Ok(composed.composition)
    }

    /// Reads what the request names on disk: a slip in it is told at once, before other programs are asked.
    pub(super) fn read_files(&self, request: &RunRequest) -> Result<Option<(Script, String)>, OrchestratorError> {
        load_formula(&request.formula, self.ground.formulas.as_ref())?;
        Ok(request.rehearse.as_deref().map(load).transpose()?)
    }

    pub(super) async fn composed(
        &self,
        request: &RunRequest,
        info: &TrackerInfo,
        found: Option<&Unrecorded>,
    ) -> Result<Composed, OrchestratorError> {
        let facts = self.ground.workspace.facts().await?;
        let root = self.doors.tracker.show(&request.bead).await?;
        let parsed = root.as_ref().map(|bead| parse_contract(&bead.description));
        let contract = parsed.as_ref().and_then(|contract| contract.as_ref().ok());
        let scope = contract.map(|contract| contract.scope.named_paths()).unwrap_or_default();
        let title = root.as_ref().map(|bead| bead.title.clone()).unwrap_or_default();
        let mut resolved = self.resolve(request, contract, &title, None)?;
        let level = level(request, contract, &resolved.vars);
        let assessment = assess(level, &scope);
        if assessment.effective != assessment.stated {
            // Mandates speak of the level that counts.
            resolved = self.resolve(request, contract, &title, Some(assessment.effective))?;
        }
        let view = contract.map(ContractView::of);

        let preflight = Preflight {
            bead: request.bead.clone(),
            root: root.clone().zip(parsed).map(|(bead, contract)| RootFacts {
                bead,
                contract,
                scrutiny: assessment.clone(),
            }),
            formula: request.formula.clone(),
            chain: found.map(|found| found.chain.clone()),
            live_chains: live_chains(&self.ground)?,
            dirty_paths: facts.dirty,
            modes: request.policy.clone(),
        };
        let ruling = self.judge(preflight).await?;
        if let Some(refused) = ruling.refused() {
            return Err(refused.into());
        }
        let root = root.ok_or_else(|| TrackerError::NotFound { verb: "show", bead: request.bead.clone() })?;
        let shape = compile(&resolved, &roster(&self.ground)?)?;
        let (base_ref, mut base_sha) = self.base(request, &facts).await?;
        if let Some(found) = found {
            base_sha = self.ground.workspace.resolve(&found.base).await?;
        }
        self.refuse_foreign_tree(&request.bead, &shape, &base_sha, found.is_some()).await?;
        let chain = match found {
            Some(found) => found.chain.clone(),
            None => {
                let chain = new_chain(&info.prefix);
                let origin = Origin { base: &base_sha, rehearsal: request.rehearse.is_some() };
                self.ground.tracker.check_pour(&plan(&shape, &chain, &root, &origin)).await?;
                chain
            }
        };
        let mut composition =
            composition(request, &root, &shape, &assessment, (base_ref, base_sha), facts.dirty, &ruling);
        composition.contract = view;
        let scrutiny = Scrutinies {
            stated: assessment.stated.as_str().to_owned(),
            effective: assessment.effective.as_str().to_owned(),
        };
        Ok(Composed { chain, composition, shape, root, ruling, scope, scrutiny })
    }

    fn resolve(
        &self,
        request: &RunRequest,
        contract: Option<&Contract>,
        title: &str,
        effective: Option<Scrutiny>,
    ) -> Result<crate::chain::formula::Resolved, OrchestratorError> {
        let formulas = self.ground.formulas.as_ref();
        let declared = load_formula(&request.formula, formulas)?.vars;
        let mut vars = request.vars.clone();
        // What the contract says fills what the operator left open, where the formula asks for it.
        let mut fill = |name: &str, value: String| {
            if declared.contains_key(name) && !value.is_empty() {
                vars.entry(name.to_owned()).or_insert(value);
            }
        };
        fill("root_title", title.to_owned());
        if let Some(contract) = contract {
            fill("scope", contract.scope.paths.join(", "));
        }
        let said = request.scrutiny.or_else(|| contract.and_then(|contract| contract.scrutiny));
        fill("scrutiny", said.map(|level| level.as_str().to_owned()).unwrap_or_default());
        let takes = |level: &str| {
            let allowed = declared.get("scrutiny").map(|var| &var.allowed);
            allowed.is_some_and(|words| words.is_empty() || words.iter().any(|word| word == level))
        };
        if let Some(level) = effective.map(Scrutiny::as_str).filter(|level| takes(level)) {
            vars.insert("scrutiny".to_owned(), level.to_owned());
        }
        Ok(resolve_named(&request.formula, &vars, formulas)?)
    }

    async fn judge(&self, preflight: Preflight) -> Result<Ruling, OrchestratorError> {
        let gone = || OrchestratorError::System { reason: "Policy is being restarted".to_owned() };
        let policy = self.doors.policy.open().ok_or_else(gone)?;
        let ask = |reply| PolicyMsg::Judge { preflight: Box::new(preflight), reply };
        match policy.call(ask, Some(std::time::Duration::from_secs(30))).await {
            Ok(CallResult::Success(ruling)) => Ok(ruling),
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => Err(gone()),
        }
    }

    async fn base(&self, request: &RunRequest, facts: &RepoFacts) -> Result<(String, String), OrchestratorError> {
        match &request.base {
            Some(revision) => Ok((revision.clone(), self.ground.workspace.resolve(revision).await?)),
            None => Ok((facts.branch.clone().unwrap_or_else(|| facts.head.clone()), facts.head.clone())),
        }
    }
}

/// Stated scrutiny: the operator's word (the flag, else the variable given by hand), the contract's, the formula's.
fn level(
    request: &RunRequest,
    contract: Option<&Contract>,
    vars: &BTreeMap<String, String>,
) -> (Scrutiny, crate::chain::scrutiny::Origin) {
    let word = |vars: &BTreeMap<String, String>| vars.get("scrutiny").and_then(|word| word.parse().ok());
    let formula = word(vars);
    stated(request.scrutiny.or_else(|| word(&request.vars)), contract.and_then(|contract| contract.scrutiny), formula)
}

fn roster(ground: &Ground) -> Result<BTreeMap<String, Tier>, OrchestratorError> {
    let tier = |name: &str| ground.roster.get(name).ok().map(|specialist| (name.to_owned(), specialist.tier()));
    Ok(ground.roster.names().filter_map(tier).collect())
}

/// Chains that hold a bead now, of whatever process.
fn live_chains(ground: &Ground) -> Result<Vec<LiveChain>, OrchestratorError> {
    let reader = match Reader::open(&ground.layout.database()) {
        Ok(reader) => reader,
        Err(StoreError::NotThere { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let live = reader.live_requests()?.into_iter().map(|live| LiveChain {
        scope: kept_scope(&live.request_json),
        chain: live.chain,
        formula: live.formula,
        bead: live.bead,
    });
    Ok(live.collect())
}

fn composition(
    request: &RunRequest,
    root: &Bead,
    shape: &Shape,
    scrutiny: &Assessment,
    (base_ref, base_sha): (String, String),
    dirty_paths: usize,
    ruling: &Ruling,
) -> Composition {
    let names = |ids: &[crate::ids::StepId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    Composition {
        formula: shape.formula.clone(),
        root_bead_id: request.bead.to_string(),
        title: root.title.clone(),
        vars: shape.vars.clone(),
        scrutiny: scrutiny.clone(),
        contract: None,
        base_ref,
        base_sha,
        dirty_paths,
        steps: shape
            .steps
            .iter()
            .map(|step| StepPlan {
                step: step.id.to_string(),
                role: step.role.clone(),
                tier: step.tier,
                class: step.class,
                needs: step.needs.iter().map(ToString::to_string).collect(),
                mandatory: step.mandatory,
            })
            .collect(),
        waves: waves(shape).iter().map(|wave| names(wave)).collect(),
        critical_path: names(&critical_path(shape, |_| 1).0),
        findings: ruling.shown().map(|finding| format!("{}: {}", finding.kind.code(), finding.message)).collect(),
    }
}
