//! Embeds the orchestrator: runs a chain on a repository, follows its events, and cancels it on Ctrl-C.
//!
//! ```text
//! cargo run --example embed -- <repository> <formula> <bead> [rehearsal.json]
//! ```

use std::error::Error;
use std::path::PathBuf;

use specialists::{NoticeKind, Orchestrator, RunRequest, Started, chain_report};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(repository), Some(formula), Some(bead)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: embed <repository> <formula> <bead> [rehearsal.json]".into());
    };
    let program = |name| std::env::var_os(name).map(PathBuf::from);
    let orchestrator = Orchestrator::builder(&repository).bd(program("SP_BD")).pi(program("SP_PI")).build().await?;
    let request = RunRequest { rehearse: args.next().map(PathBuf::from), ..RunRequest::new(formula, bead) };
    let chain = match orchestrator.run_chain(request).await? {
        Started::Running(mut handle) => {
            loop {
                tokio::select! {
                    notice = handle.next() => match notice.map(|notice| notice.kind) {
                        Some(NoticeKind::Event { seq, event }) => eprintln!("{seq:>4}  {event:?}"),
                        Some(NoticeKind::Waiting { on, why }) => eprintln!("      waits for the {on}: {why}"),
                        Some(_) | None => break,
                    },
                    _ = tokio::signal::ctrl_c() => handle.cancel("Ctrl-C"),
                }
            }
            println!("{:?}", handle.wait().await);
            handle.chain().clone()
        }
        Started::Elsewhere { chain, .. } | Started::Resting { chain } => chain,
        _ => return Ok(()),
    };
    let report = chain_report(orchestrator.root(), chain.as_str()).await?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    orchestrator.close().await;
    Ok(())
}
