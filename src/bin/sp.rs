//! The `sp` program.

fn main() -> std::process::ExitCode {
    specialists::cli::main()
}
