//! A system on stubs, and chains to run in it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use specialists::ports::Bead;
use specialists::{ChainHandle, ChainStatus, Ending, Orchestrator, RunRequest, Started};

use super::agent::{Flood, StubAgent};
use super::tracker::StubTracker;
use super::workspace::StubWorkspace;

/// What goes wrong in a bench is told and ends it.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// A running system whose tracker, repository and agent are stubs.
pub(crate) struct Rig {
    /// The tracker, for its counts.
    pub(crate) tracker: Arc<StubTracker>,
    /// The system.
    pub(crate) orchestrator: Orchestrator,
    root: PathBuf,
}

impl Rig {
    /// Starts a system that keeps its files below `root`.
    pub(crate) async fn start(root: &Path, flood: Flood) -> Outcome<Self> {
        let tracker = Arc::new(StubTracker::default());
        let orchestrator = Orchestrator::builder(root)
            .tracker(Arc::clone(&tracker) as _)
            .agent(Arc::new(StubAgent::flooding(flood)))
            .workspace(Arc::new(StubWorkspace::new(root.to_owned())), root.to_owned())
            .build()
            .await?;
        Ok(Self { tracker, orchestrator, root: root.to_owned() })
    }

    /// Begins a code-standard chain on a bead of its own.
    pub(crate) async fn begin(&self, number: u64) -> Outcome<ChainHandle> {
        let bead = contract(number);
        let request = RunRequest::new("code-standard", bead.id.as_str());
        self.tracker.add(bead);
        running(self.orchestrator.run_chain(request).await?)
    }

    /// Runs one chain to its end.
    pub(crate) async fn run(&self, number: u64) -> Outcome<()> {
        finish(self.begin(number).await?).await
    }

    /// Ends the system and returns the rows of its timelines: of text and thinking blocks, and all.
    pub(crate) async fn close(self) -> Outcome<(u64, u64)> {
        self.orchestrator.close().await;
        let database = rusqlite::Connection::open(self.root.join(".specialists/db/observability.db"))?;
        let sql = "SELECT count(*) FILTER (WHERE type IN ('text', 'thinking')), count(*) FROM specialist_events";
        let rows: (i64, i64) = database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((rows.0.cast_unsigned(), rows.1.cast_unsigned()))
    }
}

/// Takes the handle of a chain that runs in this process.
pub(crate) fn running(started: Started) -> Outcome<ChainHandle> {
    match started {
        Started::Running(handle) => Ok(handle),
        other => Err(format!("the chain does not run here: {other:?}").into()),
    }
}

/// Waits until a chain is ready to merge; any other end is an error.
pub(crate) async fn finish(mut chain: ChainHandle) -> Outcome<()> {
    match chain.wait().await {
        Ending::AtRest(ChainStatus::ReadyToMerge) => Ok(()),
        other => Err(format!("chain {} ended otherwise: {other:?}", chain.chain()).into()),
    }
}

/// A contract whose scope is its own, so that no chain is in another's way.
fn contract(number: u64) -> Bead {
    Bead {
        id: format!("stub-{number:04}"),
        title: format!("The last page of part {number} is lost"),
        status: "open".to_owned(),
        issue_type: "bug".to_owned(),
        description: format!(
            r#"<change-contract type="bug" scrutiny="medium">
  <problem>The pager loses its last page when the number of lines is no multiple of the page size.</problem>
  <scope><path>part{number}/pager.sh</path></scope>
  <non-goals><item>New options</item></non-goals>
  <validation><criterion>`./test.sh` passes</criterion></validation>
  <acceptance><criterion>Every line of a file is on one of its pages.</criterion></acceptance>
</change-contract>"#
        ),
        ..Bead::default()
    }
}
