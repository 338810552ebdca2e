//! Checks the documents of the options against their one table.

use backend::config;
use watchglass_tests::server::Server;

/// The flags of the page of common flags, each with its value and default.
fn common_flags() -> Vec<(String, String, String)> {
    let text = include_str!("../docs/reference/flags.md");
    let rows = text.split("| flag | default | meaning |").nth(1).expect("the table of flags").lines().skip(2);
    rows.take_while(|row| row.starts_with('|'))
        .map(|row| {
            let mut columns = row.split('|').map(str::trim).skip(1);
            let flag = columns.next().expect("a flag").trim_matches('`');
            let (flag, value) = flag.split_once(' ').unwrap_or((flag, ""));
            (flag.to_string(), value.to_string(), columns.next().expect("a default").trim_matches('`').to_string())
        })
        .collect()
}

#[test]
fn common_flags_have_the_values_and_defaults_of_the_table() {
    let reference = config::reference();
    let mut known: Vec<(&str, &str)> = reference
        .lines()
        .filter_map(|line| {
            let mut columns = line.split(" | ").map(|column| column.trim_matches(['|', ' ']));
            let flag = columns.next()?.trim_matches('`');
            // Text in the place of a default may differ there.
            let default = columns.nth(1)?.strip_prefix('`').unwrap_or_default();
            flag.starts_with("--").then_some((flag, default.trim_end_matches('`')))
        })
        .collect();
    assert!(known.len() > 15, "{known:?}");
    known.push(("--config FILE", ""));
    let common = common_flags();
    assert!(common.len() > 10, "{common:?}");
    for (flag, value, default) in common {
        let written = format!("{flag} {value}");
        let found = known.iter().find(|(known, _)| *known == written.trim());
        let (_, known) = found.unwrap_or_else(|| panic!("flags.md: there is no {written}"));
        assert!(default.starts_with(known), "flags.md: {flag} has the default {known}, not {default}");
    }
}

// The default of --disk-path differs by system.
#[cfg(target_os = "linux")]
#[test]
fn the_document_is_what_the_table_gives() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/options.md");
    let reference = config::reference();
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &reference).expect("the document is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        written, reference,
        "docs/reference/options.md is stale: UPDATE=1 cargo test -p watchglass-tests options"
    );
}

#[test]
fn the_page_of_counters_is_what_the_server_prints() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/counters.md");
    let reference = backend::http::counters();
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &reference).expect("the page is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == reference,
        "docs/reference/counters.md is stale: UPDATE=1 cargo test -p watchglass-tests options"
    );
    let listed: Vec<&str> = written.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let of_catalog = include_str!("../docs/reference/metrics.md");
    for server in [Server::start(["demo", "--gpus", "2"]), Server::start(["serve", "--memory"])] {
        let text = server.get("/metrics", &[]).body;
        for (name, help) in text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' ')) {
            let known = listed.contains(&name)
                || of_catalog.contains(&format!("`{name}{{"))
                || of_catalog.contains(&format!("`{name}`"));
            assert!(known, "{name} ({help}) is in neither page");
        }
    }
}

/// One key of the example configuration file: its table, and its line.
struct Setting {
    header: String,
    line: String,
    is_required: bool,
}

fn settings_of(example: &str) -> Vec<Setting> {
    let (mut header, mut comment, mut all) = (String::new(), String::new(), Vec::new());
    for line in example.lines() {
        match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(' ') => comment += rest,
            Some(rest) if rest.starts_with('[') => {
                header = rest.to_string();
                comment.clear();
            }
            Some(rest) if rest.contains(" = ") => {
                let is_required = comment.ends_with("[required]");
                all.push(Setting { header: header.clone(), line: rest.to_string(), is_required });
                comment.clear();
            }
            _ => comment.clear(),
        }
    }
    all
}

/// The configuration with these settings, each in its table; an error when the program does not accept it.
fn configuration(settings: &[&Setting]) -> Result<config::Config, String> {
    let (mut text, mut header) = (String::new(), "");
    for setting in settings {
        if setting.header != header {
            header = &setting.header;
            text += &format!("{header}\n");
        }
        text += &format!("{}\n", setting.line);
    }
    read(&text).map_err(|why| format!("{why} in\n{text}"))
}

fn read(text: &str) -> Result<config::Config, String> {
    let args = ["watchglass", "--config", "f"].map(std::ffi::OsString::from);
    match config::parse(args, &|_| None, &|_| Ok(text.to_string())) {
        Ok(config::Command::Serve(config)) => Ok(config),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

// Some examples differ by system.
#[cfg(target_os = "linux")]
#[test]
fn the_example_of_the_configuration_file_is_what_the_tables_give() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/config.example.toml");
    let example = config::example();
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &example).expect("the example is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == example,
        "docs/reference/config.example.toml is stale: UPDATE=1 cargo test -p watchglass-tests options"
    );
    assert_eq!(read(&example), read(""), "as it is, it sets nothing");
}

#[cfg(target_os = "linux")]
#[test]
fn each_key_of_the_example_is_accepted_by_itself() {
    let all = settings_of(&config::example());
    assert!(all.len() > 120, "{}", all.len());
    for one in &all {
        assert!(!one.line.ends_with("= []") && !one.line.ends_with("= \"\""), "{} is no example", one.line);
        // The key with the required keys of its table. Some keys need one or two others of their table.
        let beside: Vec<&Setting> =
            all.iter().filter(|other| other.header == one.header && other.line != one.line).collect();
        let with = |others: &[&Setting]| {
            let is_taken = |setting: &&Setting| {
                setting.line == one.line && setting.header == one.header
                    || setting.header == one.header
                        && !one.header.is_empty()
                        && (setting.is_required || others.iter().any(|other| other.line == setting.line))
            };
            configuration(&all.iter().filter(is_taken).collect::<Vec<_>>())
        };
        let singles = beside.iter().map(|other| vec![*other]);
        let later = |at: usize| beside[at + 1..].iter();
        let pairs = beside.iter().enumerate().flat_map(|(at, one)| later(at).map(|other| vec![*one, *other]));
        let mut helped = singles.chain(pairs);
        let taken = with(&[]).or_else(|why| helped.find_map(|others| with(&others).ok()).ok_or(why));
        taken.unwrap_or_else(|why| panic!("{} {}: {why}", one.header, one.line));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn all_keys_of_the_example_are_accepted_together_but_those_that_exclude_each_other() {
    let all = settings_of(&config::example());
    let is_choice = |one: &&Setting| CHOICES.iter().any(|key| format!("{} {}", one.header, one.line).starts_with(key));
    let (choices, rest): (Vec<_>, Vec<_>) = all.iter().partition(is_choice);
    assert_eq!(choices.len(), CHOICES.len());
    let written = configuration(&rest).expect("the rest is one configuration");
    // Round trip: the printed configuration reads back as the same, except for secrets.
    let printed = written.to_toml();
    assert_eq!(read(&printed).expect("it is read again").to_toml(), printed);
    for choice in choices {
        let with = all.iter().filter(|one| !is_choice(one) || std::ptr::eq(*one, choice));
        configuration(&with.collect::<Vec<_>>()).expect_err(&choice.line);
    }
}

/// Keys that exclude another one, which stays.
const CHOICES: &[&str] = &[
    "[[sign_in.oidc]] client_secret = ",
    "[sign_in.github] client_secret = ",
    "[cluster] token_file = ",
    "[[hub]] pin = ",
];

/// The specific part of the help of a command and its subcommands. Shared options are on the page of options.
fn help_of(words: &[&str], page: &mut String) {
    let asked = words.iter().copied().chain(["--help"]);
    let help = String::from_utf8(watchglass_tests::server::run(asked).stdout).expect("text");
    let own = |part: &&str| {
        !part.contains(":\n") || ["Commands:", "Arguments:", "Options:"].iter().any(|s| part.starts_with(s))
    };
    let parts: Vec<&str> = help.trim_end().split("\n\n").filter(own).collect();
    let title = [&["watchglass"], words].concat().join(" ");
    page.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", parts.join("\n\n")));
    let below = parts.iter().find_map(|part| part.strip_prefix("Commands:\n")).unwrap_or_default();
    for line in below.lines() {
        let name = line.trim_start().split(' ').next().unwrap_or_default();
        if name != "help" {
            help_of(&[words, &[name]].concat(), page);
        }
    }
}

// The help of a command differs by system.
#[cfg(target_os = "linux")]
#[test]
fn the_page_of_commands_is_what_their_help_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/commands.md");
    let mut page = "# Commands\n\nThe help of every command, without the options that several share: those are in [Options](options.md).\n".to_owned();
    help_of(&[], &mut page);
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/reference/commands.md is stale: UPDATE=1 cargo test -p watchglass-tests options");
}
