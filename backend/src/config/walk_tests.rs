//! Properties of every row of the table of options.

use super::*;
use crate::config::option::ConfigOption;
use crate::config::table::OPTIONS;
use settings::Takes;

/// Values of which every flag accepts two different ones.
const VALUES: &[&str] = &[
    "7",
    "8",
    "1m",
    "2m",
    "2s",
    "3s",
    "true",
    "false",
    "uid",
    "off",
    "warn",
    "debug",
    "127.0.0.1",
    "::1",
    "cpu",
    "memory",
    "/a",
    "/b",
    "https://a",
    "https://b",
    "a=http://a/",
    "b=http://b/",
    "a.example",
    "b.example",
    "20MiB",
    "30MiB",
];

fn served(args: &[&str], file: &str) -> Result<Config, ConfigError> {
    let args = ["watchglass", "--config", "f"].iter().chain(args).map(OsString::from);
    match parse(args, &|_| None, &|_| Ok(file.to_string())) {
        Ok(Command::Serve(config)) => Ok(config),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    }
}

fn flags() -> impl Iterator<Item = &'static ConfigOption<Config>> {
    OPTIONS.iter().filter(|row| !row.flag.is_empty())
}

#[test]
fn every_flag_wins_over_the_file_in_both_directions() {
    for row in flags() {
        let written = |value: &&str| format!("--{}={value}", row.flag);
        let mut all: Vec<(String, Config)> = Vec::new();
        for flag in VALUES.iter().map(written) {
            if let Ok(config) = served(&[&flag], "")
                && all.iter().all(|(_, other)| *other != config)
            {
                all.push((flag, config));
            }
        }
        let [(one, with_one), (other, with_other), ..] = &all[..] else {
            panic!("--{} takes fewer than two of VALUES: {all:?}", row.flag)
        };
        for (flag, wanted, file) in [(one, with_one, with_other), (other, with_other, with_one)] {
            let file = file.to_toml();
            assert_eq!(served(&[flag], &file).as_ref(), Ok(wanted), "{flag} over\n{file}");
            assert_ne!(served(&[], &file).as_ref(), Ok(wanted), "{file}");
        }
    }
}

#[test]
fn an_empty_list_clears_the_list_of_the_file() {
    let file = "pid = [4]\ngpu = [1]\nhosts = [\"a\"]\norigins = [\"http://a\"]\nembed = [\"http://a\"]\n\
        allow_users = [0]\ndisk_paths = [\"/a\"]\n[[openmetrics]]\nname = \"a\"\nurl = \"http://a/\"\n[[hub]]\nurl = \"https://a\"";
    for row in flags().filter(|row| row.kind.takes() == Takes::Many) {
        let cleared = served(&[&format!("--{}=", row.flag)], file);
        match row.flag {
            "bind" => assert!(cleared.expect_err("nobody could call").to_string().contains("at least one address")),
            "collectors" => assert!(cleared.expect_err("no name").to_string().contains("there is no collector \"\"")),
            _ => {
                let shown = row.kind.show(&cleared.expect("it is cleared"));
                assert!(shown.is_none_or(|list| list == toml::Value::Array(Vec::new())), "--{}", row.flag);
                assert_ne!(row.kind.show(&served(&[], file).expect("it is read")), None, "--{}", row.flag);
            }
        }
    }
    let half = served(&["--pid", "4,"], "").expect_err("an empty value beside another is a mistake").to_string();
    assert!(half.contains("--pid: \"\" is not a process id"), "{half}");
}

#[test]
fn a_switch_is_switched_off_and_on() {
    for row in flags().filter(|row| row.kind.takes() == Takes::Switch) {
        let shown = |args: &[&str], file: &str| row.kind.show(&served(args, file).expect("it is read"));
        let (bare, on, off) =
            (format!("--{}", row.flag), format!("--{}=true", row.flag), format!("--{}=false", row.flag));
        for file in ["true", "false"].map(|value| format!("{} = {value}", row.key)) {
            assert_eq!(shown(&[&bare], &file), Some(true.into()), "{file}");
            assert_eq!(shown(&[&on], &file), Some(true.into()), "{file}");
            assert_eq!(shown(&[&off], &file), Some(false.into()), "{file}");
        }
        let wrong = served(&[&format!("--{}=no", row.flag)], "").expect_err("neither").to_string();
        assert!(wrong.contains("write true or false"), "{wrong}");
    }
}

#[test]
fn flags_and_keys_stand_once_and_say_what_they_do() {
    let words: Vec<String> = flags::command().get_subcommands().map(|word| word.get_name().to_string()).collect();
    for (i, row) in OPTIONS.iter().enumerate() {
        let twice =
            OPTIONS[..i].iter().any(|other| other.key == row.key || (other.flag == row.flag && !row.flag.is_empty()));
        assert!(!twice && !row.key.is_empty(), "{} {}", row.flag, row.key);
        assert!(!row.help.is_empty() && !row.help.ends_with('.') && !row.help.contains('\n'), "{}", row.key);
        assert!(row.commands.iter().all(|command| words.iter().any(|word| word == command)), "{}", row.key);
        assert_eq!(row.flag.is_empty(), row.commands.is_empty(), "{}", row.key);
    }
}

#[test]
fn an_unknown_key_of_any_table_names_the_nearest_one() {
    let tables: Vec<_> = OPTIONS.iter().filter_map(|row| Some((row, row.kind.inner()?))).collect();
    assert!(tables.len() > 15);
    for (row, inner) in tables {
        let header = if inner.is_list { format!("[[{}]]", row.key) } else { format!("[{}]", row.key) };
        let keys: Vec<&str> = inner.keys.iter().map(|key| key.name).collect();
        let far = served(&[], &format!("{header}\nfar_from_all_of_them = 1")).expect_err("no key").to_string();
        assert!(far.contains("f, line 2: ") && far.ends_with(&format!("known are {}", keys.join(", "))), "{far}");
        for key in keys {
            let near = served(&[], &format!("{header}\n{key}z = 1")).expect_err("no key").to_string();
            assert!(near.ends_with(&format!("did you mean {key}?")), "{near}");
        }
    }
}

#[test]
fn collectors_are_brought_back_one_by_one() {
    let file = "[collectors.disk]\nenabled = false\n[collectors.cpu]\nenabled = false";
    let kept = |args: &[&str]| -> Vec<String> {
        let config = served(args, file).expect("it is read");
        config.collectors.into_iter().filter(|c| c.enabled).map(|c| c.name).collect()
    };
    let all: Vec<String> = collector::defaults().into_iter().map(|collector| collector.name).collect();
    let without = |left_out: &[&str]| -> Vec<String> {
        all.iter().filter(|name| !left_out.contains(&name.as_str())).cloned().collect()
    };
    assert_eq!(kept(&[]), without(&["cpu", "disk"]));
    assert_eq!(kept(&["--collectors", "+disk"]), without(&["cpu"]));
    assert_eq!(kept(&["--collectors", "+disk,+cpu"]), all);
    assert_eq!(kept(&["--collectors", "+disk,-memory"]), without(&["cpu", "memory"]));
    assert_eq!(kept(&["--collectors", "memory,+disk"]), ["memory", "disk"]);
    let near = served(&["--collectors", "+dsk"], "").expect_err("no such collector").to_string();
    assert!(near.contains("there is no collector \"dsk\"; did you mean disk?"), "{near}");
}

#[test]
fn the_help_of_a_command_has_the_flags_that_mean_something_to_it() {
    let Ok(Command::Say(text)) = parse(["w", "--help"].map(OsString::from), &|_| None, &|_| unreachable!()) else {
        panic!("it is help")
    };
    assert!(text.starts_with("Shows this machine live in the browser"), "{text}");
    for command in ["serve", "doctor", "export", "record", "replay", "import", "demo"] {
        let args = ["watchglass", command, "--help"].map(OsString::from);
        let Ok(Command::Say(text)) = parse(args, &|_| None, &|_| unreachable!()) else { panic!("{command}") };
        for row in flags() {
            let word = |text: &str| text.split([' ', '[', '\n']).any(|word| word == format!("--{}", row.flag));
            let own = text.split_once("Options:").is_some_and(|(_, own)| word(own));
            assert_eq!(own, row.commands.contains(&command), "--{} in the help of {command}", row.flag);
        }
    }
}

/// Words that begin a clause. A help must begin with a verb or a noun.
const CLAUSES: [&str; 8] = ["Who", "Whose", "What", "How", "Of", "When", "Where", "Whether"];

/// The helps of a command and its subcommands that are no short line. Values that a help lists do not count.
fn long_helps(command: &clap::Command) -> Vec<String> {
    let helps = command.get_arguments().filter_map(|arg| arg.get_help()).chain(command.get_about());
    let is_bad = |help: &String| {
        let own = help.split(" [default: ").next().unwrap_or_default();
        let words = own.split(": ").next().unwrap_or_default();
        let first = own.split(' ').next().unwrap_or_default();
        words.chars().count() > 72 || own.ends_with('.') || CLAUSES.contains(&first)
    };
    let below = command.get_subcommands().flat_map(long_helps);
    helps.map(ToString::to_string).filter(is_bad).chain(below).collect()
}

#[test]
fn helps_are_short_lines_like_those_of_clap() {
    let planted = clap::Command::new("a").about("What it does").arg(clap::Arg::new("b").help("Ends with a stop."));
    assert_eq!(long_helps(&planted), ["Ends with a stop.", "What it does"]);
    let found = long_helps(&super::flags::shown_commands());
    assert!(found.is_empty(), "{found:#?}");
}
