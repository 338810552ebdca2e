//! A hub fetches samples later that it lost or did not get in time: a damaged block, and the backlog of a slow
//! connection.

use std::path::{Path, PathBuf};
use watchglass_tests::cutter::{Direction, Way};
use watchglass_tests::fleet::{Fleet, Harm, SLOW_RATE};

/// Sealed files of a hub, in any of its folders.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(segments(&entry.path())),
            Ok(_) if entry.file_name().to_string_lossy().starts_with("q-") => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

#[test]
fn a_damaged_block_of_the_hub_is_fetched_again_from_the_agent() {
    let mut fleet = Fleet::with_people();
    fleet.start_agent();
    fleet.grows("samples come");
    fleet.harm(Harm::Away);
    // Late samples are in a file of their own once they are complete.
    let file = fleet.until("what was missing is in a segment", || segments(fleet.hub_folder()).pop());
    fleet.kill_hub();
    let mut bytes = std::fs::read(&file).expect("a segment");
    let damaged = bytes.len() / 8..bytes.len() * 5 / 8;
    bytes[damaged].iter_mut().for_each(|byte| *byte ^= 0xff);
    std::fs::write(&file, bytes).expect("written");
    assert!(!fleet.lacks().is_empty(), "what is damaged is not told for sound");
    fleet.start_hub();
    fleet.grows("samples come again");
    // A read includes them.
    let key = format!("Authorization: Bearer {}", fleet.keys["data"]);
    let read = || fleet.server().get("/api/v1/export?format=csv&tag=openmetrics.books.*&from=-1h", &[&key]);
    let answer = read();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let audit = fleet.settle();
    assert!(audit.sound() && audit.stored > 30, "{audit:?}");
}

#[test]
fn over_a_slow_link_all_comes_in_the_end() {
    let mut fleet = Fleet::start();
    fleet.strike(Harm::Away);
    for direction in [Direction::Up, Direction::Down] {
        fleet.cutter.set(direction, Way { rate: Some(SLOW_RATE), ..Way::default() });
    }
    fleet.grows("samples come slowly");
    let audit = fleet.settle();
    assert!(audit.sound() && audit.stored > 30, "{audit:?}");
}
