//! Cleaning, cutting, and the content of a notice.

use crate::sample_tests::{AT, HOSTILE, alert, digest, notice, resolved, test};
use crate::text::{clean, cut, lines, markdown, moment, plain, rfc3339};
use shared::alert::{AlertState, Notice, NoticeKind};

#[test]
fn a_text_loses_what_turns_or_ends_a_line() {
    let said = clean(HOSTILE);
    assert!(said.contains("{run} & abc X-Injected: yes"), "{said}");
    assert!(!said.contains(['\n', '\r', '\u{202e}', '\u{2066}']), "{said:?}");
    assert_eq!(lines("first\n\n\n\nsecond\r\nthird\u{7}"), "first\n\nsecond\nthird");
}

#[test]
fn texts_are_cut_between_letters() {
    assert_eq!(cut("abc", 3), "abc");
    assert_eq!(cut("abcdef", 5), "ab…");
    assert_eq!(cut("ééé", 5), "é…");
    assert_eq!(cut("🔥🔥", 7), "🔥…");
    assert_eq!(cut("abc def", 7), "abc def");
    for most in 3..40 {
        assert!(cut(HOSTILE, most).len() <= most);
    }
}

#[test]
fn lines_and_moments_read_well() {
    assert_eq!(clean(" a\tb\r\n\r\nc\u{0}\u{1b}[31m\u{2028}d\u{feff}\u{e0041} "), "a b c[31m d");
    assert_eq!(lines("\n\na\r\nb\u{85}\n\n\nc\n"), "a\nb\n\nc");
    assert_eq!(rfc3339(AT * 1_000 + 7), "2026-11-23T14:05:00.007Z");
    assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999Z");
    assert_eq!(moment((AT - 86_400) * 1_000, AT * 1_000), "2026-11-22 14:05 UTC");
}

#[test]
fn a_notice_says_who_what_and_how_many() {
    let said = plain(&notice(NoticeKind::Firing));
    assert_eq!(said.title, "[critical] node-12 GPU 5 at 89.1 °C, above 85 °C for 2 min");
    assert_eq!(
        said.blocks().join("\n\n"),
        "node-12 GPU 5 at 89.1 °C, above 85 °C for 2 min\nnode-12 GPU 6 at 86.0 °C\n… and 54 more\n\nSee the fans \
         first.\nThen call the desk.\n\nHelp: https://wiki.example.org/hot_(gpu)\n\n\
         https://watchglass.example.org/?page=alerts&alert=A1&w=1h\n\nWatchglass, team lab"
    );
    let said = plain(&resolved());
    assert_eq!(said.title, "[resolved] node-12 GPU 5 at 89.1 °C, above 85 °C for 2 min");
    assert_eq!(said.subjects[1], "node-12 GPU 6 at 86.0 °C (14:02 to 14:04 UTC)");
    let told = Notice { title: "Resolved: it was hot".into(), ..resolved() };
    assert_eq!(plain(&told).title, "[resolved] it was hot");
    let said = plain(&digest());
    assert_eq!(said.counts, ["20 × GPU is hot", "6 × disk *full*"]);
    assert_eq!(said.from, "Watchglass on hub-1, team lab");
    assert_eq!(plain(&test()).title, "[test] This is a test of lab-channel");
    let mut one = notice(NoticeKind::Firing);
    one.alerts.truncate(1);
    one.more = 0;
    assert!(plain(&one).subjects.is_empty(), "what the title says is not said again");
    one.alerts[0].text = "loss is NaN\nat step 12".into();
    assert_eq!(plain(&one).subjects, ["loss is NaN\nat step 12"]);
    one.note = "loss is NaN\nat step 12".into();
    assert!(plain(&one).subjects.is_empty(), "what the note says is not said again");
    one.note = String::new();
    one.alerts[0].unknown_since = Some(AT * 1_000);
    one.alerts[0].count = 64;
    one.alerts[0].state = AlertState::Firing;
    assert!(
        plain(&one).subjects[0].ends_with("(reported 64 times) (no data since 14:05 UTC)\nloss is NaN\nat step 12")
    );
    one.help = Some("javascript:alert(1)".into());
    one.link = Some("https://me:pw@example.org/".into());
    assert_eq!((plain(&one).help, plain(&one).link), (None, None));
}

#[test]
fn marks_of_markdown_are_shown_as_they_are() {
    for (text, escaped) in [
        ("a_b *c* `d`", "a\\_b \\*c\\* \\`d\\`"),
        ("node-12.lab 1.5 GB", "node-12.lab 1.5 GB"),
        ("# a\n- b\n  + c\n12. d", "\\# a\n\\- b\n  \\+ c\n12\\. d"),
        ("[x](y) <z> ||s||", "\\[x\\]\\(y\\) \\<z\\> \\|\\|s\\|\\|"),
    ] {
        assert_eq!(markdown(text), escaped);
    }
}

proptest::proptest! {
    /// Any text becomes one line within its maximum length.
    #[test]
    fn any_text_is_made_a_line(text in "\\PC*|[\\x00-\\x{202f}]*", most in 3_usize..400) {
        let bad = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        proptest::prop_assert!(!clean(&text).contains(bad));
        proptest::prop_assert!(!lines(&text).replace('\n', "").contains(bad));
        proptest::prop_assert!(cut(&text, most).len() <= most);
    }

    /// A notice of any size fits the limits of each service.
    #[test]
    fn any_notice_fits(said in "\\PC{0,4000}", note in "[@<*_\\n]{0,3000}", count in 0_u8..30, most in 200_usize..5_000) {
        let mut notice = notice(NoticeKind::Firing);
        notice.title.clone_from(&said);
        notice.note = note;
        notice.alerts = (0..count).map(|number| alert(number, &said)).collect();
        let written = plain(&notice).fitted(most, str::len, |plain| markdown(&plain.title) + &markdown(&plain.blocks().join("\n")));
        proptest::prop_assert!(written.len() <= most);
    }
}
