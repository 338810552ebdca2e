//! Placeholders, cleaning, cutting, and what a notice says.

use crate::sample_tests::{AT, HOSTILE, alert, digest, notice, resolved, test};
use crate::text::{
    MAX_VALUE_BYTES, PLACEHOLDERS, Values, check, clean, cut, duration, fill, lines, markdown, moment, note, plain,
    rfc3339, title,
};
use shared::alert::{AlertState, NoticeKind};

fn values(pairs: &[(&str, &str)]) -> Values {
    let mut values = Values::default();
    pairs.iter().for_each(|(name, value)| values.set(name, value));
    values
}

#[test]
fn placeholders_are_filled_once_and_values_are_data() {
    let values = values(&[("source", "node-{run}"), ("run", "{source}{{"), ("value", "48 %"), ("nonsense", "x")]);
    for (template, filled) in [
        ("{source}: {value}", "node-{run}: 48 %"),
        ("{run}", "{source}{{"),
        ("{{run}", "{run}"),
        ("{{{value}}", "{48 %}"),
        ("{{", "{"),
        ("}", "}"),
        ("", ""),
        ("no braces", "no braces"),
        ("{gpu}", ""),
        ("{nonsense}", "{nonsense}"),
        ("{source", "{source"),
        ("{so{value}", "{so48 %"),
        ("{ source }", "{ source }"),
        ("{source.name}", "{source.name}"),
    ] {
        assert_eq!(fill(template, &values), filled, "{template}");
    }
}

#[test]
fn an_unknown_placeholder_is_an_error_that_names_the_known_ones() {
    for name in PLACEHOLDERS {
        assert_eq!(check(&format!("a {{{name}}} b")), Ok(()));
    }
    for (template, part) in [
        ("{runs}", "{runs} is no placeholder: there are {rule}, {severity}"),
        ("{}", "{} is no placeholder"),
        ("{{run}} {file:/etc/passwd}", "{file:/etc/passwd} is no placeholder"),
        ("{run|upper}", "write {{ for a brace"),
        ("{run", "a { has no }"),
        ("{a{run}", "a { has no }"),
        ("{a\u{202e}b\n}", "{ab} is no placeholder"),
    ] {
        let error = check(template).expect_err(template);
        assert!(error.contains(part), "{template}: {error}");
    }
    assert_eq!(check("{{ {{{run}} }"), Ok(()));
}

#[test]
fn values_are_clean_and_short() {
    let values = values(&[("run", HOSTILE), ("tag", &"é".repeat(500))]);
    let title = title("{run}", &values);
    assert!(title.len() <= 150 && !title.contains(['\n', '\r', '\u{202e}', '\u{2066}']), "{title:?}");
    assert!(fill("{run}", &values).contains("{run} & abc X-Injected: yes"), "{}", fill("{run}", &values));
    let tag = fill("{tag}", &values);
    assert!(tag.len() <= MAX_VALUE_BYTES && tag.ends_with("é…"), "{tag}");
    assert_eq!(note("first\n\n\n\nsecond\r\nthird\u{7}", &values), "first\n\nsecond\nthird");
    assert_eq!(note(&"x".repeat(3_000), &values).len(), 2_000);
}

#[test]
fn an_alert_knows_its_own_values() {
    let alert = alert(5, "hot");
    let values = Values::of(&alert, AT * 1_000);
    let filled =
        fill("{rule}|{severity}|{state}|{subject}|{source}|{run}|{project}|{gpu}|{tag}|{began}|{duration}", &values);
    assert_eq!(filled, "GPU is hot|critical|firing|node-12/gpu.5.temp|node-12|r-1||5|gpu.5.temp|14:02 UTC|3 min");
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
fn lines_and_spans_read_well() {
    assert_eq!(clean(" a\tb\r\n\r\nc\u{0}\u{1b}[31m\u{2028}d\u{feff}\u{e0041} "), "a b c[31m d");
    assert_eq!(lines("\n\na\r\nb\u{85}\n\n\nc\n"), "a\nb\n\nc");
    for (ms, text) in [
        (-5, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (125_000, "2 min 5 s"),
        (3_600_000, "1 h"),
        (5_400_000, "1 h 30 min"),
        (90_000_000, "1 d 1 h"),
    ] {
        assert_eq!(duration(ms), text);
    }
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
    one.alerts[0].unknown_since = Some(AT * 1_000);
    one.alerts[0].count = 64;
    one.alerts[0].state = AlertState::Firing;
    assert!(plain(&one).subjects[0].ends_with("(told 64 times) (no data since 14:05 UTC)\nloss is NaN\nat step 12"));
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
    /// Whatever is filled in, a title is one line of its length, and nothing in it turns text or ends a line.
    #[test]
    fn any_value_in_any_template_is_a_line(template in ".*", value in "\\PC*|[\\x00-\\x{202f}]*|\\{[a-z]*\\}", most in 3_usize..400) {
        let values = values(&[("run", &value), ("source", &value)]);
        for filled in [title(&template, &values), title("{run} at {source}", &values), clean(&value)] {
            let bad = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
            proptest::prop_assert!(!filled.contains(bad));
        }
        proptest::prop_assert!(title(&template, &values).len() <= 150);
        proptest::prop_assert!(note(&template, &values).len() <= 2_000);
        proptest::prop_assert!(cut(&value, most).len() <= most);
    }

    /// However much a notice has to say, each service gets what it takes.
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
