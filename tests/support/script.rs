//! Scripts of rehearsals: which role answers what (docs/rehearsal.md).

use std::fs;

use serde_json::{Map, Value, json};

use super::repo::Repo;

/// One answer of the model.
#[derive(Debug, Clone)]
pub struct Turn(Map<String, Value>);

/// A turn that says a JSON object and ends the round.
pub fn says(answer: Value) -> Turn {
    turn("text", json!({ "json": answer }))
}

/// A turn that says a text.
pub fn says_text(text: &str) -> Turn {
    turn("text", text.into())
}

/// A turn that calls one of pi's tools.
pub fn calls(name: &str, arguments: Value) -> Turn {
    turn("tools", json!([{ "name": name, "arguments": arguments }]))
}

/// A turn that runs a command.
pub fn bash(command: &str) -> Turn {
    calls("bash", json!({ "command": command }))
}

/// A turn that replaces a text in a file.
pub fn edits(path: &str, old: &str, new: &str) -> Turn {
    calls("edit", json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] }))
}

/// A turn that writes a file.
pub fn writes(path: &str, content: &str) -> Turn {
    calls("write", json!({ "path": path, "content": content }))
}

/// A turn that mends the bug of the demo repository.
pub fn fixes() -> Turn {
    edits("src/pager.sh", "    echo $((total / $2))\n", "    echo $(((total + $2 - 1) / $2))\n")
}

fn turn(field: &str, value: Value) -> Turn {
    let usage = json!({ "input": 100, "output": 10, "cached": 0, "reasoning": 0 });
    Turn(Map::from_iter([(field.to_owned(), value), ("usage".to_owned(), usage)]))
}

impl Turn {
    /// A turn that only goes wrong.
    pub fn fails(fault: Value) -> Self {
        Self(Map::from_iter([("fault".to_owned(), fault)]))
    }

    /// Goes wrong the first `times` times, then answers.
    #[must_use]
    pub fn after_fault(self, fault: Value, times: u32) -> Self {
        self.with("fault", fault).with("fault_times", times.into())
    }

    /// Waits before the first byte of the answer.
    #[must_use]
    pub fn after_ms(self, delay: u32) -> Self {
        self.with("delay_ms", delay.into())
    }

    /// Sets any field of a turn.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.0.insert(field.to_owned(), value);
        self
    }
}

/// A script on its way.
#[must_use]
pub struct Rehearsal<'a> {
    repo: &'a Repo,
    roles: Map<String, Value>,
}

impl<'a> Rehearsal<'a> {
    pub(super) fn new(repo: &'a Repo) -> Self {
        Self { repo, roles: Map::new() }
    }

    /// Adds the next round of a role (or of a step, by its id).
    pub fn round(mut self, role: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns: Vec<Value> = turns.into_iter().map(|turn| Value::Object(turn.0)).collect();
        let entry = self.roles.entry(role).or_insert_with(|| json!({ "rounds": [] }));
        entry["rounds"].as_array_mut().unwrap().push(json!({ "turns": turns }));
        self
    }

    /// Writes the script beside the repository and returns its path.
    pub fn write(self) -> String {
        let script = json!({ "rehearsal": 1, "description": "A test.", "roles": self.roles });
        let path = self.repo.base().join(format!("script-{}.json", self.repo.next_number()));
        fs::write(&path, format!("{script:#}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    }
}
