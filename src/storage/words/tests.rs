use super::*;
use crate::storage::connection::in_memory;

#[test]
fn a_word_reads_back_as_it_was_written_and_an_unknown_one_is_an_error() {
    let connection = in_memory();
    for word in JobStatus::ALL.iter().copied() {
        let back: JobStatus = connection.query_row("SELECT ?1", [word], |row| row.get(0)).unwrap();
        assert_eq!(back, word);
        assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
    }
    for word in ChainStatus::ALL.iter().copied() {
        let back: ChainStatus = connection.query_row("SELECT ?1", [word], |row| row.get(0)).unwrap();
        assert_eq!(back, word);
        assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
    }
    let unknown = connection.query_row("SELECT 'completed'", [], |row| row.get::<_, JobStatus>(0)).unwrap_err();
    assert!(unknown.to_string().contains("unknown word `completed`"), "{unknown}");
}

#[test]
fn the_unique_indexes_hold_exactly_the_live_words() {
    let connection = in_memory();
    let definition = |index: &str| -> String {
        connection.query_row("SELECT sql FROM sqlite_master WHERE name = ?1", [index], |row| row.get(0)).unwrap()
    };
    for (index, live) in
        [("idx_jobs_live_bead_specialist", JobStatus::live_list()), ("idx_chains_live_bead", ChainStatus::live_list())]
    {
        let sql = definition(index);
        assert!(sql.contains(&format!("status IN ({live})")), "{sql}\n does not hold {live}");
    }
}
