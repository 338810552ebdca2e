//! The tables of XIDs, and messages as drivers write them.

use super::*;

#[test]
fn the_catalog_has_each_number_once_with_a_known_action() {
    let codes: Vec<u32> = catalog().iter().map(|xid| xid.code).collect();
    assert_eq!(codes, (1..=172).collect::<Vec<u32>>());
    let mut names: Vec<&str> = catalog().iter().map(|xid| xid.mnemonic).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 172, "each name once");
    for xid in catalog() {
        assert!(Action::of_bucket(xid.immediate).is_some(), "{xid:?}");
        let word =
            |text: &str| text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_/-".contains(&b));
        assert!(word(xid.mnemonic) && word(xid.immediate) && word(xid.investigatory), "{xid:?}");
        let driver = xid.followed_by_154;
        assert!(matches!(driver, "-" | "yes" | "R565" | "R570" | "R575"), "{xid:?}");
        assert!(["-", "A", "AH", "AHB", "AHBG", "HBG", "BG", "G", "H"].contains(&xid.products), "{xid:?}");
    }
    let buckets = |bucket: &str| catalog().iter().filter(|xid| xid.immediate == bucket).count();
    assert_eq!(
        ["IGNORE", "RESTART_APP", "RESET_GPU", "WORKFLOW_NVLINK5_ERR", "RESTART_BM", "-"].map(buckets),
        [21, 48, 14, 7, 1, 11],
        "as many as the page has"
    );
    let file = include_str!("catalog.txt");
    assert!(file.starts_with("# NVIDIA's Xid Catalog: https://docs.nvidia.com/") && file.contains("R575"));
}

#[test]
fn actions_are_numbered_in_order_and_each_has_a_next_step() {
    for (number, action) in (0_u8..).zip(Action::ALL) {
        assert_eq!((action as u8, Action::of_number(number)), (number, Some(action)));
        let next = action.next();
        assert!(next.starts_with(char::is_uppercase) && !next.ends_with('.') && next.len() <= 120, "{next}");
    }
    assert_eq!(Action::of_number(16), None);
    let mut by_cost = Action::ALL;
    by_cost.sort_unstable();
    let place = |action: Action| by_cost.iter().position(|own| *own == action);
    // All numbers are in the order of the cost, but those of actions that came later.
    let [.., domain, bus] = Action::ALL;
    assert!(Action::ALL[..14].is_sorted() && domain > Action::Recover && domain < Action::DrainPeers);
    assert!(bus > Action::DrainAndReset && bus < Action::RestartMachine);
    assert_eq!((place(Action::Ignore), place(Action::RestartMachine)), (Some(0), Some(15)));
}

#[test]
fn severities_are_those_of_the_classes() {
    let of = |code: u32| by_code(code).map(|xid| xid.action().severity());
    for code in [63, 92, 43, 45, 106, 121, 137, 157, 162, 169] {
        assert_eq!(of(code), Some(Severity::Note), "{code}");
    }
    for code in [13, 31, 94, 74, 144, 145, 146, 147, 148, 149, 150, 154, 54] {
        assert_eq!(of(code), Some(Severity::Warning), "{code}");
    }
    for code in [46, 48, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 171, 172] {
        assert_eq!(of(code), Some(Severity::Critical), "{code}");
    }
    assert_eq!((of(0), of(173), of(999)), (None, None, None));
}

#[test]
fn programs_and_memory_are_told_apart() {
    let programs: Vec<u32> = catalog().iter().filter(|xid| xid.is_of_programs()).map(|xid| xid.code).collect();
    assert_eq!(programs, [11, 13, 25, 31, 32, 37, 43, 45, 69, 80, 108, 137]);
    assert!(catalog().iter().all(|xid| !xid.words().is_empty()));
    assert_eq!(by_code(119).map(Xid::words), Some("its system processor did not respond"));
    assert_eq!(by_code(31).map(Xid::words), Some("usually caused by a program, not by the board"));
    let memory: Vec<u32> = catalog().iter().filter(|xid| xid.is_of_memory()).map(|xid| xid.code).collect();
    assert_eq!(memory, [48, 64, 94, 95, 140, 171, 172]);
}

#[test]
fn a_recovery_action_is_read_from_its_message() {
    let to = |words: &str| decode(154, &format!("GPU recovery action changed from 0x0 (None) to {words}"));
    for (words, expected) in [
        ("0x0 (None)", Some(Action::Ignore)),
        ("0x1 (GPU Reset Required)", Some(Action::ResetGpu)),
        ("0x2 (Node Reboot Required)", Some(Action::RestartMachine)),
        ("0x3 (Drain P2P)", Some(Action::DrainPeers)),
        ("0x4 (Drain and Reset)", Some(Action::DrainAndReset)),
        // Drivers from 610 on have other words.
        ("0x1 (PF FLR)", Some(Action::ResetGpu)),
        ("0x2 (OS Reboot)", Some(Action::RestartMachine)),
        ("0x6 (Bus Reset)", Some(Action::ResetBus)),
        ("0x9 (Dance)", None),
        ("0x100 (None)", None),
        ("0x1", None),
        ("0x1 (GPU Res", None),
        ("GPU Reset Required", None),
    ] {
        assert_eq!(to(words), expected, "{words}");
    }
    let numbers = [2, 4, 5, 6, 7, 8].map(Action::of_recovery);
    let restart = Some(Action::RestartMachine);
    let others = [Action::DrainAndReset, Action::RecoverDomain, Action::ResetBus].map(Some);
    assert_eq!(numbers, [restart, others[0], others[1], others[2], restart, None]);
    for action in (1..=7).filter_map(Action::of_recovery) {
        assert!(action.need().is_some() && action.severity() >= Severity::Warning, "{action:?}");
    }
    assert_eq!(action(154, ""), Some(Action::Recover));
    assert_eq!((action(31, "pid=7, name=x, Ch 0a"), action(999, "")), (Some(Action::RestartApp), None));
}

#[test]
fn link_errors_are_decoded_for_drivers_before_and_from_r575() {
    let of = |code: u32, words: &str| decode(code, &format!("NETIR_LINK_EVT Fatal XC0 i0 Link 08 ({words})"));
    // As drivers before R575 write it: lowest bits 0111000110, reason 000100.
    let old = "0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000";
    assert_eq!(of(149, old), Some(Action::ResetGpu));
    // The peer was the reason.
    assert_eq!(of(149, "0x021425c6 0x00000000 0x00000000"), Some(Action::ResetGpu));
    // From R575: lowest bits 0010001.
    assert_eq!(of(149, "0x00400011 0x0"), Some(Action::ResetGpu));
    assert_eq!(of(149, "0x02600011 0x0"), Some(Action::Ignore), "reason 100110");
    assert_eq!(of(149, "0x03f00011 0x0"), None, "a reason that the page lacks");
    // An action that depends on a further bit.
    assert_eq!((of(145, "0x000000c2 0x1"), of(145, "0x000004c2 0x1")), (Some(Action::Ignore), Some(Action::ResetGpu)));
    assert_eq!((of(145, "0x00000006 0x4"), of(145, "0x00000086 0x4")), (Some(Action::Ignore), Some(Action::ResetGpu)));
    assert_eq!((of(144, "0x00000021 0x2"), of(144, "0x00000021 0x3")), (Some(Action::ResetGpu), None));
    assert_eq!(of(150, "0x00000000 0xffffffff"), Some(Action::ResetGpu));
    assert_eq!(of(145, "0x00000082 0x1"), Some(Action::RestartApp), "without an XID 154");
    // Another code, and texts that are none.
    assert_eq!(of(119, old), None);
    for words in ["", "0x", "0x0", "x y", "0x123456789 0x0"] {
        assert_eq!(of(149, words), None, "{words}");
    }
    assert_eq!(action(149, "cut off (0x"), Some(Action::CheckLinks));
}

#[test]
fn no_link_error_has_two_actions() {
    assert_eq!(LINK_ERRORS.len(), 98);
    let low = |row: &LinkError, info: u32| row.low.iter().any(|(value, bits)| info & ((1 << bits) - 1) == *value);
    for row in LINK_ERRORS.iter() {
        assert!((144..=150).contains(&row.code));
        for (value, _) in row.low {
            for other in LINK_ERRORS.iter().filter(|other| other.code == row.code && other.reason == row.reason) {
                let same = other.status == row.status || other.status.is_none() || row.status.is_none();
                assert!(!(same && low(other, value)) || other.action == row.action, "{} {value:b}", row.code);
            }
        }
    }
}

#[test]
fn bits_of_an_nvlink_error_decide_by_the_gravest() {
    let of = |words: &str| decode(74, &format!("pid='<unknown>', NVLink: fatal error detected on link 6({words})"));
    assert_eq!(of("0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0"), Some(Action::CheckMechanicals));
    assert_eq!(of("0x1, 0x0, 0x0, 0x0, 0x100000, 0x0, 0x0"), Some(Action::Ignore));
    assert_eq!(of("0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0"), Some(Action::FollowOther));
    assert_eq!(of("0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0"), Some(Action::ContactSupport));
    assert_eq!(of("0x10000, 0x0, 0x0, 0x40000, 0x0, 0x0, 0x0"), Some(Action::ResetGpu));
    assert_eq!(of("0x4, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0"), None, "a bit that the page lacks");
    assert_eq!(of("0x10000, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0"), None, "a register that the page lacks");
    assert_eq!((of("0x10000"), of("0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0")), (None, None));
    assert_eq!(action(74, "NVLink"), Some(Action::CheckLinks));
}
