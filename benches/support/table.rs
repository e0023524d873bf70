//! The table: each measurement several times in child processes, the middle one beside goal and reference.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::rig::Outcome;

/// Each fact of a measurement, in the order of its runs.
pub(crate) type Runs = BTreeMap<String, Vec<f64>>;

/// How a figure is held against its goal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Told, without a promise.
    None,
}

/// One line of the table.
pub(crate) struct Line {
    pub(crate) figure: &'static str,
    pub(crate) measured: f64,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
    /// What the existing system takes.
    pub(crate) existing: &'static str,
}

/// Runs a measurement of this program in `times` fresh processes, each on an empty directory below `place`.
pub(crate) fn repeat(place: &Path, times: u32, measurement: &[&str]) -> Outcome<Runs> {
    let mut runs = Runs::new();
    for _ in 0..times {
        let root = tempfile::Builder::new().prefix("sp-bench-").tempdir_in(place)?;
        let output =
            Command::new(std::env::current_exe()?).args(measurement).env("SP_BENCH_ROOT", root.path()).output()?;
        if !output.status.success() {
            return Err(format!("{measurement:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        take(&mut runs, &String::from_utf8(output.stdout)?)?;
    }
    Ok(runs)
}

/// Reads `name value` lines.
pub(crate) fn take(runs: &mut Runs, text: &str) -> Outcome<()> {
    for line in text.lines() {
        let (name, value) = line.split_once(' ').ok_or_else(|| format!("not `name value`: {line}"))?;
        runs.entry(name.to_owned()).or_default().push(value.trim().parse()?);
    }
    Ok(())
}

/// Returns the middle of a fact's runs; 0 where it never came.
pub(crate) fn median(runs: &Runs, name: &str) -> f64 {
    let mut values = runs.get(name).cloned().unwrap_or_default();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns the least of a fact's runs; 0 where it never came.
pub(crate) fn least(runs: &Runs, name: &str) -> f64 {
    runs.get(name).and_then(|values| values.iter().copied().min_by(f64::total_cmp)).unwrap_or_default()
}

/// Prints the table; returns whether every goal is met.
pub(crate) fn print(lines: &[Line]) -> bool {
    println!("| figure | measured | goal | existing system | |");
    println!("|---|---:|---:|---:|---|");
    let mut met = true;
    for line in lines {
        let (goal, kept) = match line.goal {
            Goal::AtLeast(least) => (format!("≥ {}", number(least)), line.measured >= least),
            Goal::AtMost(most) => (format!("≤ {}", number(most)), line.measured <= most),
            Goal::None => (String::new(), true),
        };
        met &= kept;
        let mark = match (line.goal, kept) {
            (Goal::None, _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        };
        let measured = format!("{} {}", number(line.measured), line.unit);
        println!("| {} | {} | {goal} | {} | {mark} |", line.figure, measured.trim_end(), line.existing);
    }
    met
}

/// Three digits that matter, thousands apart.
fn number(value: f64) -> String {
    let places = if value == 0.0 || value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 && digit.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.is_empty() { grouped } else { format!("{grouped}.{rest}") }
}
