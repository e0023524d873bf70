use proptest::prelude::*;

use super::*;

fn effective(stated: Scrutiny, path: &str) -> Scrutiny {
    assess((stated, Origin::Contract), &[path]).effective
}

#[test]
fn every_surface_glob_compiles() {
    SURFACES.iter().flat_map(|surface| surface.globs).for_each(|glob| drop(matcher(glob)));
}

#[test]
fn a_scope_that_touches_a_surface_is_raised_to_its_floor() {
    use Scrutiny::{Critical, High, Low, Medium};
    for (path, expected) in [
        ("src/pager.rs", Low),
        ("src/**", Low),
        ("src/auth/login.rs", High),
        ("src/auth/**", High),
        ("SRC/Auth", High),
        ("./src/pager/../auth", High),
        ("src/auth.rs", High),
        ("src/author.rs", Low),
        ("lib/credentials_store.py", High),
        ("src/token/mod.rs", High),
        ("src/crypto", High),
        (".env", High),
        ("config/specialists/executor.specialist.json", High),
        (".specialists/user/mine.json", High),
        ("src/runner.ts", High),
        ("db/migrations/004.sql", High),
        ("schema.prisma", High),
        ("Cargo.lock", Medium),
        ("web/package-lock.json", Medium),
        ("hooks/pre-commit", Critical),
        (".claude/hooks/x.sh", Critical),
        ("src/permissions/deep/check.rs", Critical),
        ("src/hooks/useThing.ts", Low),
        (".github/workflows/ci.yml", Critical),
        (".github", Critical),
        ("`src/auth/login.rs` and its tests", High),
        ("src/a.rs, src/auth/b.rs", High),
        ("the token bucket of src/limit.rs", Low),
        ("token", High),
    ] {
        assert_eq!(effective(Low, path), expected, "{path}");
    }
}

#[test]
fn the_reasons_name_surface_path_glob_and_both_levels() {
    let found = assess((Scrutiny::Low, Origin::Flag), &["Cargo.lock", "src/auth/login.rs", "hooks/x"]);
    assert_eq!(found.effective, Scrutiny::Critical);
    let told: Vec<_> = found.escalations.iter().map(|e| (e.surface.as_str(), e.path.as_str(), e.from, e.to)).collect();
    assert_eq!(
        told,
        [
            ("lockfiles", "Cargo.lock", Scrutiny::Low, Scrutiny::Medium),
            ("authentication and secrets", "src/auth/login.rs", Scrutiny::Low, Scrutiny::High),
            ("permissions and hooks", "hooks/x", Scrutiny::Low, Scrutiny::Critical),
        ]
    );
    assert!(assess((Scrutiny::Critical, Origin::Flag), &["hooks/x"]).escalations.is_empty());
}

#[test]
fn the_flag_wins_over_the_contract_and_the_contract_over_the_formula() {
    use Scrutiny::{High, Low, Medium};
    for (flag, contract, formula, expected) in [
        (Some(Low), Some(High), Some(Medium), (Low, Origin::Flag)),
        (None, Some(High), Some(Medium), (High, Origin::Contract)),
        (None, None, Some(Low), (Low, Origin::Formula)),
        (None, None, None, (Medium, Origin::Default)),
    ] {
        assert_eq!(stated(flag, contract, formula), expected);
    }
}

#[test]
fn a_level_reads_back_from_its_word_and_a_slip_names_the_nearest() {
    for (word, level) in LEVELS {
        assert_eq!(word.to_uppercase().parse(), Ok(level));
        assert_eq!(level.as_str(), word);
    }
    let slip = "hihg".parse::<Scrutiny>().unwrap_err();
    assert!(slip.to_string().contains("did you mean `high`?"), "{slip}");
}

fn level() -> impl Strategy<Value = Scrutiny> {
    (0..LEVELS.len()).prop_map(|at| LEVELS[at].1)
}

proptest! {
    #[test]
    fn effective_is_never_below_stated_and_each_reason_explains_it(
        stated in level(),
        paths in proptest::collection::vec("([a-z./*]{0,12}|src/auth/[a-z]{1,3}|hooks/[a-z]|Cargo\\.lock|\\PC{0,20})", 0..6),
    ) {
        let found = assess((stated, Origin::Contract), &paths);
        prop_assert!(found.effective >= stated);
        let highest = found.escalations.iter().map(|e| e.to).max().unwrap_or(stated);
        prop_assert_eq!(found.effective, highest);
        prop_assert!(found.escalations.iter().all(|e| e.to > e.from && e.from == stated));
    }

    #[test]
    fn more_paths_never_lower_the_level(stated in level(), paths in proptest::collection::vec("src/(auth|a|token)/x|hooks/x|go\\.sum", 1..5)) {
        let all = assess((stated, Origin::Contract), &paths).effective;
        let fewer = assess((stated, Origin::Contract), &paths[1..]).effective;
        prop_assert!(all >= fewer);
    }
}
