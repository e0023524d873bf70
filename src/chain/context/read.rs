//! Reads an envelope as strictly as `config/schemas/chain-context.xsd` describes it: order, names, values.

use roxmltree::{Document, Node};

use crate::ids::{BeadId, ChainId, JobId};

use super::envelope::{EnvelopeClass, EnvelopeFacts, PendingStep, Position, StepStatus, UpstreamStep};

/// Why a text is no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the chain context: {reason}")]
pub struct EnvelopeError {
    /// What is wrong, and where.
    pub reason: String,
}

type Read<T> = Result<T, EnvelopeError>;

fn wrong<T>(reason: impl Into<String>) -> Read<T> {
    Err(EnvelopeError { reason: reason.into() })
}

/// Reads an envelope back. What the XML does not hold (distances, classes of pending steps) is 0, `step` and false.
pub fn parse_envelope(text: &str) -> Read<EnvelopeFacts> {
    let document = Document::parse(text).map_err(|error| EnvelopeError { reason: error.to_string() })?;
    let root = document.root_element();
    named(root, "chain-context")?;
    let [version] = attributes(root, ["version"])?;
    if version != "1" {
        return wrong(format!("version {version} is not known"));
    }
    let children = elements(root)?;
    let &[chain, template, root_bead, step, role, class, position, scrutiny, upstream, pending, preload, worktree] =
        &children[..]
    else {
        return wrong(format!("{} elements where 12 belong", children.len()));
    };
    named(scrutiny, "scrutiny")?;
    let [stated, effective] = attributes(scrutiny, ["stated", "effective"])?;
    empty(scrutiny)?;
    named(upstream, "upstream")?;
    let [upstream_complete] = attributes(upstream, ["complete"])?;
    named(pending, "pending")?;
    let [] = attributes(pending, [])?;
    named(preload, "preloaded-context")?;
    let [depth, preload_complete] = attributes(preload, ["depth", "complete"])?;
    empty(preload)?;
    let level = |word: &str| word.parse().or_else(|_| wrong(format!("scrutiny `{word}`")));
    Ok(EnvelopeFacts {
        chain: ChainId::new(text_of(chain, "chain-id")?),
        template: text_of(template, "chain-template")?,
        root_bead: BeadId::new(text_of(root_bead, "root-bead-id")?),
        step_bead: BeadId::new(text_of(step, "current-step-bead-id")?),
        role: text_of(role, "current-role")?,
        class: word(EnvelopeClass::ALL, EnvelopeClass::as_str, &text_of(class, "current-class")?)?,
        position: word(Position::ALL, Position::as_str, &text_of(position, "position")?)?,
        stated: level(stated)?,
        effective: level(effective)?,
        upstream: elements(upstream)?.into_iter().map(upstream_step).collect::<Read<_>>()?,
        upstream_complete: flag(upstream_complete)?,
        pending: elements(pending)?.into_iter().map(pending_step).collect::<Read<_>>()?,
        preload_depth: depth.parse().or_else(|_| wrong(format!("depth `{depth}`")))?,
        preload_complete: flag(preload_complete)?,
        worktree: text_of(worktree, "worktree-path")?,
    })
}

fn upstream_step(node: Node<'_, '_>) -> Read<UpstreamStep> {
    named(node, "step")?;
    empty(node)?;
    let job = node.attribute("job-id");
    let [role, bead, status] = match job {
        Some(_) => {
            attributes(node, ["role", "bead-id", "job-id", "status"]).map(|[role, bead, _, s]| [role, bead, s])?
        }
        None => attributes(node, ["role", "bead-id", "status"])?,
    };
    let status = word(StepStatus::ALL, StepStatus::as_str, status)?;
    Ok(UpstreamStep { role: role.into(), bead: bead.into(), job: job.map(JobId::new), status, distance: 0 })
}

fn pending_step(node: Node<'_, '_>) -> Read<PendingStep> {
    named(node, "step")?;
    empty(node)?;
    let [role, bead, status] = attributes(node, ["role", "bead-id", "status"])?;
    let status = word(StepStatus::ALL, StepStatus::as_str, status)?;
    let class = EnvelopeClass::Step;
    Ok(PendingStep { role: role.into(), bead: bead.into(), status, class, consumes: false })
}

fn named(node: Node<'_, '_>, name: &str) -> Read<()> {
    let found = node.tag_name();
    if found.name() == name && found.namespace().is_none() {
        Ok(())
    } else {
        wrong(format!("<{}> where <{name}> belongs", found.name()))
    }
}

/// The values of exactly these attributes.
fn attributes<'a, const N: usize>(node: Node<'a, '_>, names: [&str; N]) -> Read<[&'a str; N]> {
    if let Some(other) = node.attributes().find(|attribute| !names.contains(&attribute.name())) {
        return wrong(format!("attribute {} of <{}>", other.name(), node.tag_name().name()));
    }
    let mut values = [""; N];
    for (value, name) in values.iter_mut().zip(names) {
        *value = match node.attribute(name) {
            Some(found) if !found.is_empty() => found,
            _ => return wrong(format!("<{}> without {name}", node.tag_name().name())),
        };
    }
    Ok(values)
}

/// The child elements of a node that holds nothing else.
fn elements<'a, 'input>(node: Node<'a, 'input>) -> Read<Vec<Node<'a, 'input>>> {
    if node.children().any(|child| child.is_text() && !child.text().unwrap_or_default().trim().is_empty()) {
        return wrong(format!("text inside <{}>", node.tag_name().name()));
    }
    Ok(node.children().filter(Node::is_element).collect())
}

fn empty(node: Node<'_, '_>) -> Read<()> {
    if node.has_children() { wrong(format!("content of <{}>", node.tag_name().name())) } else { Ok(()) }
}

fn text_of(node: Node<'_, '_>, name: &str) -> Read<String> {
    named(node, name)?;
    let [] = attributes(node, [])?;
    match node.text() {
        Some(text) if node.children().count() == 1 => Ok(text.to_owned()),
        _ => wrong(format!("<{name}> without text, or with more than text")),
    }
}

fn word<T: Copy>(all: &[T], as_str: fn(T) -> &'static str, found: &str) -> Read<T> {
    all.iter().copied().find(|&value| as_str(value) == found).map_or_else(|| wrong(format!("value `{found}`")), Ok)
}

fn flag(word: &str) -> Read<bool> {
    word.parse().or_else(|_| wrong(format!("value `{word}` where true or false belongs")))
}
