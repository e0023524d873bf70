//! The `specialists` program: `sp` under its long name.

fn main() -> std::process::ExitCode {
    specialists::cli::main()
}
