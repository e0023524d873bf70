//! The chains that are killed, and how each goes when nobody kills it.

use std::sync::LazyLock;

use crate::support::*;

/// A chain to be killed.
pub struct Story {
    formula: &'static str,
    script: fn(&Repo) -> String,
    /// What it must leave behind, killed or not.
    pub model: fn(&str) -> Expected,
    /// How its last command ends.
    pub code: i32,
    /// Its log when nobody kills it.
    pub log: LazyLock<Vec<String>>,
}

/// executor → reviewer, all pass.
pub static SHORT: Story = Story {
    formula: PAIR,
    script: |repo| repo.rehearse().round("executor", [fixes(), says(done())]).round("reviewer", [says(pass())]).write(),
    model: |bead| Expected::pair(bead).ready(),
    code: 0,
    log: LazyLock::new(|| SHORT.unhurt()),
};

/// executor → reviewer, who finds something the first time.
pub static LOOP: Story = Story {
    formula: PAIR,
    script: |repo| {
        repo.rehearse()
            .round("executor", [fixes(), says(done())])
            .round("executor", [writes("src/size.sh", "# size > 0\n"), says(done())])
            .round("reviewer", [says(review_partial("sizes of zero are not thought of"))])
            .round("reviewer", [says(pass())])
            .write()
    },
    model: |bead| Expected::pair(bead).passes("executor").sends_back("reviewer", "executor").ready(),
    code: 0,
    log: LazyLock::new(|| LOOP.unhurt()),
};

/// executor → reviewer, who rejects the change.
pub static REJECTED: Story = Story {
    formula: PAIR,
    script: |repo| {
        repo.rehearse()
            .round("executor", [fixes(), says(done())])
            .round("executor", [writes("src/size.sh", "# size > 0\n"), says(done())])
            .round("reviewer", [says(review_fail("sizes of zero are not thought of"))])
            .round("reviewer", [says(pass())])
            .write()
    },
    model: |bead| Expected::pair(bead).passes("executor").blocks("reviewer", "rejected"),
    code: 7,
    log: LazyLock::new(|| REJECTED.unhurt()),
};

/// All six steps of code-standard.
pub static WHOLE: Story = Story {
    formula: CODE_STANDARD,
    script: |repo| {
        repo.rehearse()
            .round("executor", [fixes(), says(done())])
            .round("seconder", [says(second())])
            .round("test-engineer", [writes("test/last_page_test.sh", "exit 0\n"), says(tests_written())])
            .round("test-runner", [bash("./test.sh"), says(tests_passed())])
            .round("obligations-scanner", [says(clean())])
            .round("reviewer", [says(pass())])
            .write()
    },
    model: |bead| Expected::code_standard(bead).ready(),
    code: 0,
    log: LazyLock::new(|| WHOLE.unhurt()),
};

/// How a killed chain goes on.
#[derive(Debug, Clone, Copy)]
pub enum GoOn {
    /// `sp chain resume`.
    Resume,
    /// The same command once more.
    Rerun,
}

/// A chain on its way.
pub struct Begun {
    pub repo: Repo,
    pub bead: String,
    /// The command that began it.
    pub command: Vec<String>,
}

impl Begun {
    /// Goes on with it.
    pub fn go_on(&self, how: GoOn) -> Order<'_> {
        match how {
            GoOn::Resume => self.repo.order(["chain", "resume", &self.bead]),
            GoOn::Rerun => self.repo.order(&self.command),
        }
    }
}

impl Story {
    /// Prepares a repository for it; nothing runs yet.
    pub fn begin(&self) -> Begun {
        let repo = Repo::new();
        let bead = repo.bead("The last page is lost").contract(PAGER).create();
        let script = (self.script)(&repo);
        let command = ["chain", "run", self.formula, "--bead", &bead, "--rehearse", &script].map(str::to_owned).into();
        Begun { repo, bead, command }
    }

    fn unhurt(&self) -> Vec<String> {
        let begun = self.begin();
        begun.repo.sp(&begun.command).code(self.code);
        begun.repo.must_equal(&(self.model)(&begun.bead));
        begun.repo.story()
    }

    /// Returns the number of the n-th event of this name, from 1.
    pub fn number(&self, event: &str, nth: usize) -> u64 {
        let at = self.log.iter().enumerate().filter(|(_, found)| *found == event).nth(nth - 1);
        let (at, _) = at.unwrap_or_else(|| panic!("the log has no {nth}. `{event}`: {:#?}", *self.log));
        at as u64 + 1
    }
}
