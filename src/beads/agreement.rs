//! What the real bd calls ready is what the graph calls ready (R3-0478): the shipped formula and random graphs, poured
//! together into one workspace and walked in a random order that the graph allows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::rig::Project;
use crate::chain::formula::resolve_named;
use crate::chain::graph::compile;
use crate::chain::machine::{ChainEvent, ChainState, ClosedBy, Dice, Opening, Phase, evolve, fold, opening, step};
use crate::chain::pour::{Origin, plan};
use crate::chain::shape::{Class, Relation, Shape, Step, Target};
use crate::formulas::EmbeddedSource;
use crate::ids::{ChainId, StepId};
use crate::ports::{BatchOp, Bead, ClaimAnswer, Pour, Tracker};
use crate::specialist::Tier;

/// Of the graphs and of the walk. Another one is another walk; each is the same every time.
const SEED: u64 = 481;

/// Largest molecule that is asked for with `--mol`, which takes 60–150 ms a descendant.
const MOL_LIMIT: usize = 10;

/// And only every so many acts.
const MOL_EVERY: usize = 4;

fn shipped() -> Shape {
    let tier = |role: &str| if role == "executor" { Tier::High } else { Tier::ReadOnly };
    let roles = ["executor", "seconder", "test-engineer", "test-runner", "obligations-scanner", "reviewer"];
    let roster: BTreeMap<String, Tier> = roles.iter().map(|role| ((*role).to_owned(), tier(role))).collect();
    let vars = BTreeMap::from([("root_title".to_owned(), "Fix the pager".to_owned())]);
    compile(&resolve_named("code-standard", &vars, &EmbeddedSource).unwrap(), &roster).unwrap()
}

/// A graph of so many steps. Its file order says nothing of its edges, and relations that block nothing lie among them.
fn random(dice: &mut Dice, size: usize) -> Shape {
    let mut names: Vec<String> = (0..size).map(|at| format!("s{at}")).collect();
    (1..size).rev().for_each(|at| names.swap(at, dice.below(at + 1)));
    let mut steps: Vec<Step> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let needs: Vec<&str> = names[..at].iter().filter(|_| dice.below(3) == 0).map(String::as_str).collect();
        let other = match dice.below(size + 1) {
            past if past == size => Target::Root,
            other => Target::Step(StepId::from(names[other].as_str())),
        };
        let kind = ["validates", "relates-to", "tracks", "informs"][dice.below(4)].to_owned();
        let relations = vec![Relation { kind, target: other }];
        let priority = u8::try_from(dice.below(5)).unwrap();
        steps.push(Step { relations, priority, ..step(name, &needs, None, Class::Step) });
    }
    steps.sort_by(|a, b| a.id.cmp(&b.id));
    Shape { formula: format!("random-{size}"), vars: BTreeMap::new(), steps }
}

async fn pour(project: &Project, number: usize, shape: Shape) -> ChainState {
    let x = format!("proj-x{number}");
    project.plain(&["create", &x, "--id", &x]);
    let chain = ChainId::new(format!("proj-mol-{number:08}"));
    let root = Bead { id: x.clone(), title: x.clone(), ..Bead::default() };
    let plan = plan(&shape, &chain, &root, &Origin { base: "c0", rehearsal: true });
    project.bd.check_pour(&plan).await.unwrap();
    assert_eq!(project.bd.pour(&plan).await.unwrap(), Pour::Created);
    let opened = ChainEvent::Opened(Box::new(Opening { chain, bead: x.as_str().into(), ..opening(shape) }));
    fold(&[opened]).unwrap()
}

fn phase(chain: &ChainState, step: &StepId) -> Phase {
    chain.steps[step].phase.clone()
}

fn closed(chain: &ChainState) -> Vec<StepId> {
    chain.steps.keys().filter(|step| phase(chain, step) == Phase::Closed).cloned().collect()
}

/// One act on one chain, in bd and in the state: claim, close, or open a closed step and what is below it again.
async fn act(project: &Project, dice: &mut Dice, chain: ChainState, reopen: bool) -> (ChainState, String) {
    let (bd, done) = (&project.bd, closed(&chain));
    if reopen && !done.is_empty() {
        let back = done[dice.below(done.len())].clone();
        let below = chain.shape.descendants(&back).into_iter().map(|step| step.id.clone());
        let again: Vec<StepId> =
            below.filter(|step| phase(&chain, step) != Phase::Pending).chain([back.clone()]).collect();
        let open = |step: &StepId| BatchOp::Update {
            bead: chain.chain.step_bead(step),
            status: "open",
            assignee: Some(String::new()),
        };
        bd.batch(&again.iter().map(open).collect::<Vec<_>>(), "sp: a round").await.unwrap();
        let mut chain = chain;
        again.iter().for_each(|step| chain.steps.get_mut(step).unwrap().phase = Phase::Pending);
        return (chain, format!("{back} again, with {} below it", again.len() - 1));
    }
    let ready = chain.expected_ready();
    let open: Vec<StepId> = chain
        .steps
        .keys()
        .filter(|step| ready.contains(*step) || matches!(phase(&chain, step), Phase::Active(_)))
        .cloned()
        .collect();
    let step = open[dice.below(open.len())].clone();
    if ready.contains(&step) && dice.below(6) == 0 {
        let actor = format!("sp/{}/{step}/1", chain.chain);
        assert_eq!(bd.claim_step(&chain.chain, &step, &actor).await.unwrap(), ClaimAnswer::Claimed);
        let claimed = ChainEvent::StepClaiming { step: step.clone(), epoch: 1 };
        return (evolve(chain, &claimed), format!("{step} is claimed"));
    }
    let close = BatchOp::Close { bead: chain.chain.step_bead(&step), reason: "passed".to_owned() };
    bd.batch(&[close], "sp: a step passed").await.unwrap();
    let what = format!("{step} is closed");
    (evolve(chain, &ChainEvent::StepClosed { step, by: ClosedBy::Job }), what)
}

fn beads(chain: &ChainState) -> BTreeSet<String> {
    chain.expected_ready().iter().map(|step| chain.chain.step_bead(step).to_string()).collect()
}

fn ids(rows: &Value) -> BTreeSet<String> {
    rows.as_array().unwrap().iter().map(|bead| bead["id"].as_str().unwrap().to_owned()).collect()
}

/// One call serves all chains; the molecule that something was done to is asked for alone as well.
async fn agree(project: &Project, chains: &[ChainState], at: usize, story: &[String]) {
    let ready: BTreeSet<String> =
        project.bd.ready_steps().await.unwrap().into_iter().map(|bead| bead.to_string()).collect();
    for chain in chains {
        let prefix = format!("{}-", chain.chain);
        let ours: BTreeSet<String> = ready.iter().filter(|id| id.starts_with(&prefix)).cloned().collect();
        assert_eq!(ours, beads(chain), "bd and the graph of {} after {story:#?}", chain.chain);
    }
    let known: usize = chains.iter().map(|chain| beads(chain).len()).sum();
    assert_eq!(ready.len(), known, "a step of nobody: {ready:?} after {story:#?}");

    let (chain, json) = (&chains[at], |text: &str| -> Value { serde_json::from_str(text).unwrap() });
    let below = project.plain(&["ready", "--parent", chain.chain.as_str(), "-u", "-n", "0", "--json"]);
    assert_eq!(ids(&json(&below)), beads(chain), "`--parent {}` after {story:#?}", chain.chain);
    if chain.steps.len() <= MOL_LIMIT && story.len().is_multiple_of(MOL_EVERY) {
        // It lists the root, and steps that somebody has, too.
        let listed = json(&project.plain(&["ready", "--mol", chain.chain.as_str(), "--json"]));
        let mut free: Vec<Value> = Vec::new();
        for row in listed["steps"].as_array().into_iter().flatten() {
            let issue = &row["issue"];
            if issue["issue_type"] == "task" && issue["status"] == "open" && row["parallel_info"]["is_ready"] == true {
                free.push(issue.clone());
            }
        }
        assert_eq!(ids(&Value::Array(free)), beads(chain), "`--mol {}` after {story:#?}: {listed}", chain.chain);
    }
}

#[tokio::test]
async fn what_bd_calls_ready_is_what_the_graph_calls_ready() {
    let (project, mut dice) = (Project::new().await, Dice::new(SEED));
    let mut chains = vec![pour(&project, 0, shipped()).await];
    for number in 1..4 {
        let size = 3 + dice.below(10);
        let shape = random(&mut dice, size);
        chains.push(pour(&project, number, shape).await);
    }
    let mut reopened = BTreeSet::new();
    let mut story: Vec<String> =
        chains.iter().map(|chain| format!("{}: {}", chain.chain, chain.shape.formula)).collect();
    for at in 0..chains.len() {
        agree(&project, &chains, at, &story).await;
    }
    loop {
        let open: Vec<usize> = (0..chains.len()).filter(|at| !chains[*at].all_closed()).collect();
        let Some(at) = open.get(dice.below(open.len().max(1))).copied() else { break };
        // The shipped one and a random one have a round, about half-way.
        let half = closed(&chains[at]).len() * 2 >= chains[at].steps.len();
        let reopen = at < 2 && half && reopened.insert(at);
        let (chain, what) = act(&project, &mut dice, chains[at].clone(), reopen).await;
        story.push(format!("{}: {what}", chain.chain));
        chains[at] = chain;
        agree(&project, &chains, at, &story).await;
    }
    let told = |word: &str| story.iter().filter(|act| act.contains(word)).count();
    assert!(told("closed") >= 20 && told("claimed") >= 2 && told("again") == 2, "a walk that shows little: {story:#?}");
}
