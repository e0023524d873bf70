//! The figures that `sp` claims, measured through its public API on stubs. `make bench` runs it; docs/benchmarks.md
//! says what each figure is.
//!
//! ```text
//! figures                    measure all and print the table
//! figures <measurement> …    measure one in this process and print `name value` lines
//! ```

mod support;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use support::measure::{self, Facts};
use support::rig::Outcome;
use support::table::{Goal, Line, Runs, least, median, print, repeat, take};

/// Runs of each measurement.
const TIMES: u32 = 3;

fn main() -> ExitCode {
    // `cargo bench` hands over its own flag.
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let done = match args.split_first() {
        None => table(),
        Some((name, rest)) => one(name, rest).map(|facts| {
            facts.iter().for_each(|(name, value)| println!("{name} {value}"));
            true
        }),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("figures: {error}");
            ExitCode::from(2)
        }
    }
}

/// Makes one measurement in this process.
fn one(name: &str, rest: &[String]) -> Outcome<Facts> {
    let root = PathBuf::from(env::var_os("SP_BENCH_ROOT").ok_or("SP_BENCH_ROOT names no directory")?);
    let number = || -> Outcome<u64> { Ok(rest.first().ok_or("how many?")?.parse()?) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match name {
            "stream" => measure::stream(&root, number()?).await,
            "chains" => measure::chains(&root, number()?, false).await,
            "at-once" => measure::chains(&root, number()?, true).await,
            "real-bd" => {
                let bd = env::var_os("SP_BD").ok_or("SP_BD names no bd")?;
                measure::real_bd(&root, bd.into(), rest).await
            }
            other => Err(format!("no measurement `{other}`: stream, chains, at-once, real-bd").into()),
        }
    })
}

/// Makes all measurements. What a script measured around whole processes stands in the files that it names.
fn table() -> Outcome<bool> {
    let disk = env::temp_dir();
    let memory = Path::new("/dev/shm");
    // Without a file system in memory the CPU time of fsync is in the figure.
    let memory = if memory.is_dir() { memory } else { disk.as_path() };
    let stream = repeat(&disk, TIMES, &["stream", "1000000"])?;
    let long = repeat(&disk, 1, &["stream", "5000000"])?;
    let steps = repeat(memory, TIMES, &["chains", "50"])?;
    let synced = repeat(&disk, TIMES, &["chains", "50"])?;
    let many = repeat(&disk, TIMES, &["at-once", "200"])?;
    let unsynced = repeat(memory, TIMES, &["at-once", "200"])?;
    let (ps, all) = (measured_outside("SP_BENCH_PS")?, measured_outside("SP_BENCH_PS_ALL")?);
    let real = measured_outside("SP_BENCH_REAL_BD")?;

    let mut lines = stream_lines(&stream, &long);
    lines.extend(step_lines(&steps, &synced));
    lines.extend(many_lines(&many, &unsynced));
    for (runs, figures) in [(&ps, PS), (&all, PS_ALL)] {
        if !runs.is_empty() {
            let [wall, peak, cpu] = figures;
            lines.push(line(wall, least(runs, "wall_ms"), "ms", Goal::AtMost(10.0), "130 ms"));
            lines.push(line(cpu, least(runs, "cpu_ms"), "ms", Goal::None, ""));
            lines.push(line(peak, median(runs, "peak_mib"), "MiB", Goal::AtMost(15.0), "68 MiB"));
        }
    }
    if !real.is_empty() {
        let (wall, bd) = (median(&real, "wall_s"), median(&real, "bd_s"));
        lines.push(line("10 chains at once, real bd and git: wall", wall, "s", Goal::None, ""));
        lines.push(line("…: bd's own time, summed", bd, "s", Goal::None, ""));
        lines.push(line("…: wall ÷ bd's own time", wall / bd, "", Goal::None, ""));
        lines.push(line("…: bd calls a step, all of them", median(&real, "bd_calls") / 60.0, "", Goal::None, ""));
    }
    Ok(print(&lines))
}

const PS: [&str; 3] = ["`sp ps`, 1,000 jobs: wall", "…: peak memory", "…: CPU"];
const PS_ALL: [&str; 3] = ["`sp ps --all`, 1,000 jobs shown: wall", "…: peak memory", "…: CPU"];

fn line(figure: &'static str, measured: f64, unit: &'static str, goal: Goal, existing: &'static str) -> Line {
    Line { figure, measured, unit, goal, existing }
}

fn stream_lines(stream: &Runs, long: &Runs) -> Vec<Line> {
    let more = median(long, "peak_mib") - median(long, "peak_before_mib");
    vec![
        line(
            "delta lines a CPU second, session → job → store",
            median(stream, "lines_per_cpu_s"),
            "",
            Goal::AtLeast(100_000.0),
            "1,473",
        ),
        line("…: peak memory, 1,000,000 lines", median(stream, "peak_mib"), "MiB", Goal::AtMost(20.0), "89 MiB"),
        line("…: rows a block", median(stream, "rows_per_block"), "", Goal::AtMost(1.0), ""),
        line("memory more after 5,000,000 lines", more, "MiB", Goal::AtMost(20.0), ""),
    ]
}

fn calls(runs: &Runs, call: &str) -> f64 {
    median(runs, &format!("calls_per_step.{call}"))
}

fn step_lines(steps: &Runs, synced: &Runs) -> Vec<Line> {
    let own = |runs: &Runs| calls(runs, "claim") + calls(runs, "note") + calls(runs, "close");
    let all: f64 =
        steps.keys().filter(|name| name.starts_with("calls_per_step.")).map(|name| median(steps, name)).sum();
    vec![
        line("CPU a step, fsync excluded", median(steps, "cpu_ms_per_step"), "ms", Goal::AtMost(5.0), ""),
        line("CPU a step, on disk", median(synced, "cpu_ms_per_step"), "ms", Goal::None, ""),
        line("wall a step, on disk, one chain at a time", median(synced, "wall_ms_per_step"), "ms", Goal::None, ""),
        line("bd calls a step: claim, note, close", own(steps), "", Goal::AtMost(3.0), ""),
        line("…: `ready`, one chain", calls(steps, "ready"), "", Goal::None, ""),
        line(
            "…: setup of the chain, spread over its steps",
            all - own(steps) - calls(steps, "ready"),
            "",
            Goal::None,
            "",
        ),
    ]
}

fn many_lines(many: &Runs, unsynced: &Runs) -> Vec<Line> {
    vec![
        line("200 chains at once, on disk: wall", median(many, "wall_s"), "s", Goal::None, ""),
        line("…: CPU", median(many, "cpu_s"), "s", Goal::None, ""),
        line("…: peak memory", median(many, "peak_mib"), "MiB", Goal::None, ""),
        line("…: `ready` a step", calls(many, "ready"), "", Goal::AtMost(1.0), ""),
        line("…: CPU a step, fsync excluded", median(unsynced, "cpu_ms_per_step"), "ms", Goal::AtMost(5.0), ""),
    ]
}

/// Reads the facts in the file that a variable names; nothing where it is not set.
fn measured_outside(variable: &str) -> Outcome<Runs> {
    let mut runs = Runs::new();
    if let Some(file) = env::var_os(variable) {
        take(&mut runs, &std::fs::read_to_string(file)?)?;
    }
    Ok(runs)
}
