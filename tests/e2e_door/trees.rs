//! Branches and worktrees that are not the chain's, that are gone, or of odd names.

use std::fs;
use std::os::unix::fs::symlink;

use crate::begin;
use crate::door::{Door, real, stand_in};
use crate::support::*;

#[test]
fn a_branch_or_a_path_that_is_not_the_chain_s_is_refused() {
    let (repo, bead, script) = begin();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    let dry: Vec<&str> = run.iter().copied().chain(["--dry-run"]).collect();
    let (door, branch) = (Door::of(&repo), format!("feature/{bead}-executor"));
    let elsewhere = repo.base().join("elsewhere");

    repo.git(["worktree", "add", "-q", "-b", &branch, elsewhere.to_str().unwrap()]);
    door.refuses(&run, 3, "branch_elsewhere", &[&branch, "/elsewhere", "git worktree list"]);
    repo.git(["-C", elsewhere.to_str().unwrap(), "commit", "-q", "--allow-empty", "-m", "mine"]);
    repo.git(["worktree", "remove", elsewhere.to_str().unwrap()]);
    door.refuses(&run, 3, "foreign_branch", &[&branch, "git log"]);
    door.tells_as_json(&dry, 3, "foreign_branch", &[&branch]);
    repo.git(["branch", "-q", "-D", &branch]);
    repo.git(["branch", "feature"]);
    door.refuses(&run, 3, "branch_in_the_way", &[&branch, "git branch -m feature"]);
    door.tells_as_json(&dry, 3, "branch_in_the_way", &[&branch]);
    repo.git(["branch", "-q", "-D", "feature"]);

    let trees = repo.root().join(".worktrees");
    let path = trees.join(format!("{bead}/{bead}-executor"));
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("mine"), "x").unwrap();
    door.refuses(&run, 3, "worktree_occupied", &[path.to_str().unwrap()]);
    door.tells_as_json(&dry, 3, "worktree_occupied", &[path.to_str().unwrap()]);
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "a file").unwrap();
    door.refuses(&run, 3, "worktree_occupied", &[path.to_str().unwrap()]);
    fs::remove_file(&path).unwrap();
    symlink("/no/such/place", &path).unwrap();
    door.refuses(&run, 3, "worktree_occupied", &[path.to_str().unwrap()]);
    fs::remove_dir_all(&trees).unwrap();
    symlink(repo.base(), &trees).unwrap();
    door.refuses(&run, 3, "worktree_occupied", &[trees.to_str().unwrap()]);
    fs::remove_file(&trees).unwrap();
    // A branch of that name without any work on it is nobody's.
    repo.git(["branch", &branch]);
    door.only_shows(&dry);
}

#[test]
fn a_repository_of_an_odd_path_runs_a_whole_chain() {
    let repo = Repo::named("it's a \"r\u{e9}po\" $x\nof two lines");
    let bead = repo.bead("The last page is lost").contract(PAGER).create();
    let script = repo.rehearse().round("executor", [fixes(), says(done())]).round("reviewer", [says(pass())]).write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    let shown = Door::of(&repo).only_shows(&["chain", "show", &bead]);
    assert_eq!(shown["status"], "ready_to_merge");
    let tree = repo.root().join(format!(".worktrees/{bead}/{bead}-executor"));
    assert_eq!(shown["work"]["worktree"].as_str(), tree.to_str());
    assert_eq!(repo.git(["-C", tree.to_str().unwrap(), "status", "--porcelain"]), "");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    let branch = format!("feature/{bead}-executor");
    assert_eq!(
        repo.git(["log", "--format=%s", &format!("main..{branch}")]),
        "checkpoint(executor): ".to_owned() + &bead + " turn 1"
    );
    for args in [&["ps", "--all"][..], &["doctor"], &["chain", "graph", &bead], &["formula", "list"]] {
        Door::at(&repo, &tree).only_shows(args);
    }
    repo.git(["merge", "-q", "--no-ff", "-m", "merged", &branch]);
    repo.order(["chain", "resume", &bead]).within(tree.join("src")).run().success();
    assert_eq!(repo.show(&bead)["status"], "closed");
    assert!(repo.processes().is_empty(), "{:?}", repo.processes());
}

#[test]
fn a_worktree_or_branch_that_is_gone_comes_back_where_the_chain_knew_it() {
    let (repo, bead, _) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("executor", [writes("src/size.sh", "# size > 0\n"), says(done())])
        .round("reviewer", [says(review_fail("sizes of zero are not thought of"))])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).code(7);
    let (tree, branch) = (format!(".worktrees/{bead}/{bead}-executor"), format!("feature/{bead}-executor"));
    fs::remove_dir_all(repo.root().join(&tree)).unwrap();
    repo.git(["worktree", "prune"]);
    repo.git(["branch", "-q", "-D", &branch]);
    repo.sp(["chain", "resume", &bead, "--note", "think of zero", "--from", "executor"]).success();
    let model = Expected::pair(&bead).passes("executor").blocks("reviewer", "rejected").resumed_at("executor");
    repo.must_equal(&model.ready());
}

#[test]
fn work_begun_on_a_dirty_checkout_says_so_and_leaves_it_alone() {
    let (repo, bead, script) = begin();
    fs::write(repo.root().join("src/pager.sh"), "not for the chain\n").unwrap();
    fs::write(repo.root().join("new.txt"), "x").unwrap();
    let run = repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]);
    let report = run.success();
    for said in [&report, &run.stderr] {
        assert!(said.contains("uncommitted changes; they are not in the chain's worktree"), "{run}");
    }
    assert_eq!(repo.git(["status", "--porcelain"]), " M src/pager.sh\n?? new.txt");
    let committed = repo.git(["show", &format!("feature/{bead}-executor:src/pager.sh")]);
    assert!(committed.contains("total + $2 - 1") && !committed.contains("not for the chain"), "{committed}");
}

#[test]
fn a_worktree_is_made_once_and_reused_by_whoever_comes_next() {
    let (repo, bead, script) = begin();
    let logs = "case \"$1 $2\" in 'worktree create') echo \"$*\" >>\"$base/made\";; esac\nexec \"$real\" \"$@\"\n";
    let bd = stand_in(&repo, "logs", &real("SP_BD", "bd"), logs);
    let made = || fs::read_to_string(repo.base().join("made")).unwrap_or_default().lines().count();
    let reused = || -> Vec<bool> {
        let events = repo.events();
        events.iter().filter(|event| event["type"] == "tree_ready").map(|event| event["reused"] == true).collect()
    };
    let idle = repo.rehearse().round("executor", [says(done())]).round("reviewer", [says(pass())]).write();
    let first = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &idle]).env("SP_BD", &bd).run();
    first.code(7);
    assert_eq!((made(), reused()), (1, vec![false]), "{first}");
    assert!(!first.stderr.contains(", reused"), "{first}");

    // A chain that goes on looks for its tree as well.
    let again = repo.order(["chain", "resume", &bead, "--note", "now do it"]).env("SP_BD", &bd).run();
    again.code(7);
    assert_eq!((made(), reused()), (1, vec![false, true]), "{again}");
    repo.sp(["chain", "abandon", &bead, "--reason", "another one"]).success();

    let second = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).env("SP_BD", &bd).run();
    second.success();
    assert_eq!(made(), 1, "the second chain found the tree of the first: {second}");
    assert_eq!(reused().into_iter().filter(|reused| *reused).count(), 2);
    assert!(second.stderr.contains(&format!("/.worktrees/{bead}/{bead}-executor, reused")), "{second}");
}
