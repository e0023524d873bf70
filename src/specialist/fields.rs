//! The fields that a specialist file may have. Most are not read yet, but a name outside this list is a slip.

use serde_json::Value;

use super::error::SpecialistError;
use crate::nearest::nearest;

/// (object, its fields), by path; `[]` stands for the elements of a list. An object without a row here is free in form
/// (`output_schema`, `permissions`). Source: specialist schema 3.17 and the fields that 3.18 adds.
const FIELDS: &[(&str, &[&str])] = &[
    ("", &["specialist"]),
    (
        "specialist",
        &[
            "metadata",
            "execution",
            "prompt",
            "skills",
            "capabilities",
            "validation",
            "stall_detection",
            "mandatory_rules",
            "permissions",
            "output_file",
            "notes_mode",
            "beads_integration",
            "beads_write_notes",
        ],
    ),
    ("specialist.metadata", &["name", "version", "description", "category", "updated", "tags"]),
    (
        "specialist.execution",
        &[
            "mode",
            "model",
            "fallback_model",
            "fallback_models",
            "timeout_ms",
            "stall_timeout_ms",
            "max_retries",
            "interactive",
            "stdout_limit_bytes",
            "prompt_limit_bytes",
            "response_format",
            "output_type",
            "permission_required",
            "requires_worktree",
            "bare",
            "thinking_level",
            "auto_commit",
            "extensions",
            "expected_output_keys",
        ],
    ),
    ("specialist.execution.extensions", &["serena", "gitnexus"]),
    ("specialist.prompt", &["system", "system_prompt_mode", "task_template", "output_schema", "skill_inherit"]),
    ("specialist.skills", &["paths", "scripts"]),
    ("specialist.skills.scripts[]", &["run", "phase", "inject_output"]),
    ("specialist.capabilities", &["required_tools", "external_commands"]),
    ("specialist.validation", &["files_to_watch", "stale_threshold_days"]),
    (
        "specialist.stall_detection",
        &[
            "running_silence_warn_ms",
            "running_silence_error_ms",
            "waiting_stale_ms",
            "tool_duration_warn_ms",
            "waiting_auto_close_ms",
        ],
    ),
    ("specialist.mandatory_rules", &["template_sets", "disable_default_globals", "inline_rules"]),
    ("specialist.mandatory_rules.inline_rules[]", &["id", "level", "text", "when"]),
];

/// Refuses the first field that the schema does not have.
pub(super) fn refuse_unknown(file: &str, document: &Value) -> Result<(), SpecialistError> {
    walk(file, document, "")
}

fn walk(file: &str, value: &Value, path: &str) -> Result<(), SpecialistError> {
    match value {
        Value::Object(fields) => {
            let Some((_, known)) = FIELDS.iter().find(|(object, _)| *object == path) else { return Ok(()) };
            for (name, inner) in fields {
                let inner_path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if !known.contains(&name.as_str()) {
                    let nearest = nearest(name, known.iter().copied());
                    return Err(SpecialistError::UnknownField { file: file.to_owned(), path: inner_path, nearest });
                }
                walk(file, inner, &inner_path)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| walk(file, item, &format!("{path}[]"))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}
