//! Tests of the configuration: flags, file, precedence, errors, and the round trip from the printed form to the same
//! value.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use uplink::settings::KeyFrom;

const KNOWN_COLLECTORS: [&str; 7] = ["cpu", "memory", "disk", "nvidia", "monitor", "trainium", "tpu"];

fn known() -> Vec<CollectorConfig> {
    KNOWN_COLLECTORS.iter().map(|name| CollectorConfig::new(name)).collect()
}

fn run(args: &[&str], file: &str, log: Option<&str>) -> Result<Command, ConfigError> {
    let args = std::iter::once("watchglass").chain(args.iter().copied()).map(OsString::from);
    let env = |name: &str| log.filter(|_| name == "WATCHGLASS_LOG").map(str::to_string);
    parse_with(args, &env, &|_| Ok(file.to_string()), known())
}

#[track_caller]
fn config(args: &[&str], file: &str) -> Config {
    match run(args, file, None) {
        Ok(Command::Serve(config)) => config,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn error(args: &[&str], file: &str) -> String {
    let error = run(args, file, None).expect_err("an error");
    assert_eq!(error.status(), 2);
    error.to_string()
}

#[track_caller]
fn file_error(file: &str) -> String {
    error(&["--config", "w.toml"], file)
}

#[test]
fn without_anything_the_defaults_of_the_surface_hold() {
    let config = config(&[], "");
    assert_eq!(config.bind, [IpAddr::from([127, 0, 0, 1]), IpAddr::from(Ipv6Addr::LOCALHOST)]);
    assert_eq!((config.port, config.base_path.as_str(), config.log.as_str()), (7171, "/", "info"));
    assert_eq!((config.interval, config.retention), (Duration::from_secs(1), Duration::from_secs(43_200)));
    assert_eq!((config.local_auth, config.allow_users), (LocalAuth::Uid, vec![]));
    assert_eq!(config.disk_paths, [PathBuf::from("/")]);
    assert!(config.collectors.iter().all(|c| c.enabled) && config.collectors.len() == KNOWN_COLLECTORS.len());
}

#[test]
fn commands() {
    assert!(matches!(run(&["serve", "--port", "0"], "", None), Ok(Command::Serve(c)) if c.port == 0));
    assert!(matches!(run(&["--port", "0", "serve"], "", None), Ok(Command::Serve(c)) if c.port == 0));
    assert!(matches!(run(&["doctor"], "", None), Ok(Command::Doctor { json: false, .. })));
    let doctor = run(&["doctor", "--json", "--root", "/host"], "", None);
    assert!(matches!(doctor, Ok(Command::Doctor { json: true, config, .. }) if config.root == Some("/host".into())));
    assert!(matches!(run(&["--print-config"], "", None), Ok(Command::PrintConfig(_))));
    for args in [&["--help"][..], &["-h"], &["serve", "--help"], &["doctor", "--help"], &["--version"]] {
        assert!(matches!(run(args, "", None), Ok(Command::Say(text)) if text.contains("watchglass")), "{args:?}");
    }
    for (word, missing) in [("export", "--tag"), ("record", "<FILE>"), ("replay", "<FILE>"), ("import", "<FILE>")] {
        assert!(error(&[word], "").contains(missing), "{word}");
    }
    let export = run(&["export", "--tag", "a,b", "--from", "-1h", "--format", "csv", "--data-dir", "/d"], "", None);
    let Ok(Command::Export { config, export }) = export else { panic!("{export:?}") };
    let at = |text| when(text).expect("a time");
    assert_eq!((export.tags, export.from, export.to), (vec!["a,b".into()], Some(at("-1h")), at("now")));
    assert_eq!(config.data_dir, Some("/d".into()));
}

#[test]
fn a_demo_has_limits_and_reads_nothing_of_this_machine() {
    let demo = |args: &[&str]| match run(&[&["demo"], args].concat(), "", None) {
        Ok(Command::Demo { fleet, config }) => (fleet, config),
        other => panic!("{other:?}"),
    };
    let fleet = Fleet { gpus: 8, hosts: 1, fail: None, seed: 1 };
    assert_eq!(demo(&[]).0, fleet);
    assert_eq!(demo(&["--gpus", "64", "--hosts", "64"]).0, Fleet { gpus: 64, hosts: 64, ..fleet });
    assert_eq!(demo(&["--hosts", "200"]).0, Fleet { hosts: 200, ..fleet }, "a load for a hub");
    assert_eq!(demo(&["--fail=oom", "--seed=9"]).0, Fleet { fail: Some(Fail::Oom), seed: 9, ..fleet });
    assert_eq!(demo(&["--port", "0", "--interval", "250ms"]).1.interval, Duration::from_millis(250));
    for (args, words) in [
        (&["--gpus", "4097"][..], "1 to 512 GPUs on each machine"),
        (&["--gpus", "0"], "1 to 512"),
        (&["--hosts", "257"], "1 to 256 machines"),
        // 17 x 241 = 4,097.
        (
            &["--hosts", "17", "--gpus", "241"],
            "makes 4097 GPUs, and a demo has at most 4096; write --gpus 240 or fewer",
        ),
        (&["--fail", "fire"], "write one of none, lost, hang, throttle, ecc, straggler, oom, starvation"),
        (&["--hosts", "4", "--fail", "links"], "write --hosts 5 or more"),
        (&["--seed=-1"], "--seed"),
        (&["--pid", "7"], "--pid selects what is read from this machine"),
        (&["--root", "/host"], "--root"),
    ] {
        let text = error(&[&["demo"], args].concat(), "");
        assert!(text.contains(words), "{args:?}: {text}");
    }
}

#[test]
fn lists_are_written_with_commas_or_by_repeating() {
    let commas = config(&["--disk-path", "/,/data/", "--pid", "4,5,4", "--host", "A.example,b"], "");
    let again =
        ["--disk-path", "/", "--disk-path", "/data", "--pid", "4", "--pid=5", "--host=a.EXAMPLE", "--host", "B"];
    assert_eq!(commas, config(&again, ""));
    assert_eq!(commas.pids, [4, 5]);
    assert_eq!(commas.disk_paths, [PathBuf::from("/"), "/data".into()]);
    assert_eq!(commas.disk_paths[1].to_string_lossy(), "/data");
    assert_eq!(commas.hosts, ["a.example", "b"]);
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let file = "port = 1\ninterval = \"2s\"\npid = 7\nhosts = [\"a\", \"b\"]\nlog = \"warn\"\nmemory = true";
    let given = ["--config", "w.toml", "--port", "2", "--host", "c"];
    let Ok(Command::Serve(config)) = run(&given, file, Some("debug")) else { panic!() };
    assert_eq!((config.port, config.interval, config.memory), (2, Duration::from_secs(2), true));
    assert_eq!((config.hosts, config.pids, config.log), (vec!["c".to_string()], vec![7], "debug".to_string()));
    let Ok(Command::Serve(config)) = run(&["--log", "error"], "", Some("debug")) else { panic!() };
    assert_eq!(config.log, "error");
    let wrong = run(&[], "", Some("verbose")).expect_err("no such level").to_string();
    assert!(wrong.contains("WATCHGLASS_LOG") && wrong.contains("debug"), "{wrong}");
}

#[test]
fn collectors_are_kept_or_left_out() {
    let kept = |args: &[&str], file: &str| -> Vec<String> {
        config(args, file).collectors.into_iter().filter(|c| c.enabled).map(|c| c.name).collect()
    };
    assert_eq!(kept(&["--collectors", "memory,cpu"], ""), ["cpu", "memory"]);
    assert_eq!(kept(&["--collectors", "-cpu,-disk"], ""), ["memory", "nvidia", "monitor", "trainium", "tpu"]);
    assert_eq!(kept(&["--collectors", "cpu,disk", "--collectors=-cpu"], ""), ["disk"]);
    let file = "[collectors.disk]\nenabled = false\nevery = \"5s\"";
    assert_eq!(kept(&["--config", "f"], file), ["cpu", "memory", "nvidia", "monitor", "trainium", "tpu"]);
    assert_eq!(kept(&["--config", "f", "--collectors", "disk"], file), ["disk"]);
    let config = config(&["--config", "f"], file);
    assert_eq!(config.every("disk"), Duration::from_secs(5));
    assert_eq!(config.every("cpu"), Duration::from_secs(1));
    assert!(!config.keeps("disk") && config.keeps("cpu"));
    assert!(error(&["--collectors", "dsk"], "").contains("did you mean disk?"));
    assert!(error(&["--collectors", "-nvida"], "").contains("did you mean nvidia?"));
}

#[test]
fn tools_and_endpoints_of_collectors_are_read() {
    let file = "[collectors.trainium]\ncommand = \"/opt/neuron-monitor\"\nconfig = \"/etc/monitor.json\"\n\
        [collectors.tpu]\nendpoints = [\"localhost:8431\", \"127.0.0.1:8432\"]";
    let Ok(Command::Serve(config)) = run(&["--config", "f"], file, None) else { panic!("it is read") };
    let options = config.options();
    let own = |collector: &str, key: &str| {
        let entry = collectors::COLLECTORS.iter().find(|entry| entry.name == collector).expect("a collector");
        options.own.texts(entry.option(key).expect("its option"))
    };
    assert_eq!(own("trainium", "command"), ["/opt/neuron-monitor"]);
    assert_eq!(own("trainium", "config"), ["/etc/monitor.json"]);
    assert_eq!(own("graphcore", "command"), [""; 0], "the key of another collector");
    assert_eq!(own("tpu", "endpoints"), ["127.0.0.1:8431", "127.0.0.1:8432"]);
    let wrong = file_error("[collectors.tpu]\nendpoints = \"8431\"");
    assert!(wrong.contains("\"8431\" is not an address with a port; write 127.0.0.1:8431"), "{wrong}");
}

#[test]
fn unknown_flags_name_the_nearest() {
    let text = error(&["--prot", "1"], "");
    assert!(text.contains("--prot") && text.contains("'--port'"), "{text}");
}

#[test]
fn unknown_keys_name_the_nearest_with_file_and_line() {
    let cases = [
        ("port = 1\n\nintervall = \"1s\"", "w.toml, line 3: unknown key `intervall`; did you mean interval?"),
        ("[collectors.disk]\nevry = \"1s\"", "w.toml, line 2: unknown key `evry`; did you mean every?"),
        (
            "\n[collectors.nvidea]\nenabled = true",
            "w.toml, line 2: there is no collector \"nvidea\"; did you mean nvidia?",
        ),
        ("[collectors.disk]\nlibrary = \"/x\"", "w.toml, line 1: `library` belongs below [collectors.nvidia]"),
        ("[collectors.tpu]\nconfig = \"/bin/x\"", "w.toml, line 1: `config` belongs below [collectors.trainium]"),
    ];
    for (file, sentence) in cases {
        assert_eq!(file_error(file), format!("error: {sentence}"));
    }
    let far = file_error("[a_table_of_another_program]\nurl = \"x\"");
    assert!(far.contains("line 1: unknown key `a_table_of_another_program`; known are port, bind"), "{far}");
}

#[test]
fn a_wrong_value_in_the_file_has_its_line_and_says_what_to_write() {
    for (file, words) in [
        ("\ninterval = \"10ms\"", "line 2: 10ms is out of range; write 100ms to 1m"),
        ("interval = 1", "line 1: \"1\" is not a duration"),
        ("port = 70000", "line 1: an integer does not fit here; write u16"),
        ("memory = \"yes\"", "line 1: a string is not allowed here; write a boolean"),
        ("port = ", "line 1"),
        ("hosts = true", "a boolean is not allowed here"),
        ("interval = [\"1s\", \"2s\"]", "only one value is allowed here, not a list"),
        ("root = \"\"", "leave it out"),
        ("bind = []", "at least one address"),
        ("bind = \"0.0.0.0\"", "0.0.0.0 would let other machines connect"),
        ("port = 1\nport = 2", "line 2"),
    ] {
        let text = file_error(file);
        assert!(text.contains(words), "{file}: {text}");
    }
    let missing = parse_with(
        ["w", "--config", "no.toml"].map(OsString::from),
        &|_| None,
        &|_| Err(std::io::ErrorKind::NotFound.into()),
        known(),
    );
    assert!(missing.expect_err("no file").to_string().contains("the configuration file no.toml cannot be read"));
}

#[test]
fn wrong_values_say_what_to_write() {
    for (args, words) in [
        (["--interval", "99ms"], "99ms is out of range; write 100ms to 1m"),
        (["--interval", "61s"], "out of range"),
        (["--interval", "5"], "like 100ms, 1s, 5m or 12h"),
        (["--interval", "1.0005s"], "not a duration"),
        (["--retention", "12"], "not a duration"),
        (["--port", "70000"], "70000"),
        (["--bind", "localhost:80"], "not an IP address"),
        (["--base-path", "/a/../b"], "not a path of a URL"),
        (["--base-path", "/a/{b}"], "not a path of a URL"),
        (["--host", "https://a"], "without scheme"),
        (["--host", "*.example.org"], "not a host name"),
        (["--origin", "https://a/b"], "not an origin"),
        (["--origin", "null"], "not an origin"),
        (["--origin", "https://u:p@a"], "not an origin"),
        (["--embed", "https://a; script-src *"], "not an origin"),
        (["--allow-user", "no-such-user-here"], "there is no user"),
        (["--allow-user", "4294967295"], "there is no user"),
        (["--local-auth", "none"], "write uid or off"),
        (["--disk-path", "data"], "not an absolute path"),
        (["--pid", "0"], "not a process id"),
        (["--gpu", "-1"], "-1"),
        (["--log", "verbose"], "not a log level"),
    ] {
        let text = error(&args, "");
        assert!(text.contains(words), "{args:?}: {text}");
    }
}

#[test]
fn a_bind_beyond_loopback_names_the_three_ways_out() {
    for wide in ["0.0.0.0", "::", "192.168.1.5", "127.0.0.1,10.0.0.1", "::ffff:10.0.0.1"] {
        let text = error(&["--bind", wide, "--port", "9000"], "");
        for way in ["ssh -L 9000:localhost:9000 USER@HOST", "--host NAME --allow-user USER", "--network host"] {
            assert!(text.contains(way), "{text}");
        }
    }
    for narrow in ["127.0.0.1", "127.3.2.1", "::1", "[::1]", "::ffff:127.0.0.1"] {
        assert_eq!(config(&["--bind", narrow], "").bind.len(), 1, "{narrow}");
    }
}

#[test]
fn values_are_brought_to_one_form() {
    assert_eq!(value::base_path("a/b"), Ok("/a/b/".into()));
    assert_eq!(value::base_path("/user/name%40x/proxy/7171/"), Ok("/user/name%40x/proxy/7171/".into()));
    assert_eq!(value::origin("HTTPS://Nb.Example:443/"), Ok("https://nb.example".into()));
    for embedder in ["vscode-webview:", "https://*.vscode-cdn.net", "https://nb.example"] {
        assert_eq!(value::embedder(embedder), Ok(embedder.into()));
    }
    for wide in
        ["*", "https://*", "https://*.com", "https://*.a.*", "http://*.a.org", "https:", "data:", "https://*.a.org; x"]
    {
        assert!(value::embedder(wide).is_err(), "{wide}");
    }
    assert_eq!(value::origin("http://[::1]:8888"), Ok("http://[::1]:8888".into()));
    assert_eq!(value::host("[FE80:0::1]"), Ok("fe80::1".into()));
    assert_eq!(value::user("root"), Ok(0));
    assert_eq!(value::user("65534"), Ok(65534));
    assert_eq!(value::retention("1h30m"), Ok(Duration::from_secs(5400)));
    assert_eq!(value::interval("0.5s"), Ok(Duration::from_millis(500)));
    assert_eq!(value::interval("60s"), Ok(Duration::from_secs(60)));
}

#[test]
fn gpus_are_chosen_where_they_were_chosen_once_too() {
    assert_eq!(config(&["--config", "f"], "gpu = [1]").gpus, [1]);
    assert_eq!(config(&["--config", "f"], "[collectors.nvidia]\ngpus = [0, 2]").gpus, [0, 2]);
    assert_eq!(config(&["--config", "f"], "gpu = [1]\n[collectors.nvidia]\ngpus = [0, 2]").gpus, [1]);
    assert_eq!(config(&["--config", "f", "--gpu", "3"], "[collectors.nvidia]\ngpus = [0, 2]").gpus, [3]);
    let misplaced = error(&["--config", "f"], "[collectors.cpu]\ngpus = [0]");
    assert!(misplaced.contains("`gpus` belongs below [collectors.nvidia]"), "{misplaced}");
}

#[test]
fn help_is_grouped_and_one_line_each() {
    let Ok(Command::Say(text)) = run(&["--help"], "", None) else { panic!() };
    for heading in ["Commands:", "Page:", "Access:", "Measurement:", "Storage:", "General:"] {
        assert!(text.contains(heading), "{heading}");
    }
    for word in ["--data-dir", "--durable", "  export ", "  replay "] {
        assert!(text.contains(word), "{word}");
    }
    for line in text.lines().filter(|line| line.trim_start().starts_with("--")) {
        assert!(line.split_whitespace().count() > 2 && line.len() <= 120, "{line}");
    }
}

#[test]
fn the_help_of_export_holds_what_matters_there_and_the_rest_is_taken_all_the_same() {
    let Ok(Command::Say(text)) = run(&["export", "--help"], "", None) else { panic!() };
    for word in ["--tag", "--output", "--data-dir", "--config"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    for word in ["--port", "--host", "--interval", "--retention", "--print-config", "Access"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert!(run(&["export", "--tag", "a", "--format", "csv", "--retention", "1d", "--log", "debug"], "", None).is_ok());
    let Ok(Command::Say(text)) = run(&["doctor", "--help"], "", None) else { panic!() };
    assert!(text.contains("--port") && text.contains("--retention"), "{text}");
}

#[test]
fn sudo_uid_comes_from_the_environment() {
    let env = |name: &str| (name == "SUDO_UID").then(|| "1000".to_string());
    let read = parse_with(["w".into()], &env, &|_| unreachable!(), known());
    assert!(matches!(read, Ok(Command::Serve(config)) if config.sudo_uid == Some(1000)));
}

fn unique<T: Clone + PartialEq>(list: Vec<T>) -> Vec<T> {
    list.iter().enumerate().filter(|(i, value)| !list[..*i].contains(value)).map(|(_, value)| value.clone()).collect()
}

fn any_config() -> impl Strategy<Value = Config> {
    let name = "[a-z][a-z0-9]{0,8}(\\.[a-z]{2,5})?";
    let origin = "https?://[a-z]{1,8}(:[1-9][0-9]{3})?";
    let numbers = || proptest::collection::vec(1u32..5000, 0..3);
    let path = || "/[ -~é]{0,12}".prop_filter_map("absolute", |path| value::absolute(&path).ok());
    let duration = |least: u64, most: u64| (least..=most).prop_map(Duration::from_millis);
    let collector =
        (any::<bool>(), proptest::option::of(duration(100, 9000)), proptest::option::of(duration(10, 9000)));
    let numbers = (any::<u16>(), duration(100, 60_000), duration(60_000, 1 << 40), numbers(), numbers(), numbers());
    let lists = (proptest::collection::vec(name, 0..3), proptest::collection::vec(origin, 0..3));
    let paths = (proptest::collection::vec(path(), 0..3), proptest::option::of(path()), proptest::option::of(path()));
    let rest = (any::<bool>(), any::<bool>(), proptest::sample::select(vec!["info", "warn,watchglass=debug"]));
    let collectors = proptest::collection::vec(collector, KNOWN_COLLECTORS.len());
    (numbers, lists, paths, rest, collectors).prop_map(|(numbers, lists, paths, rest, collectors)| {
        let ports: Vec<String> = unique(numbers.5.clone()).iter().map(|port| format!("127.0.0.1:{port}")).collect();
        Config {
            port: numbers.0,
            interval: numbers.1,
            retention: numbers.2.min(Duration::from_secs(3650 * 86_400)),
            pids: unique(numbers.3),
            gpus: unique(numbers.4),
            allow_users: unique(numbers.5.clone()),
            hosts: unique(lists.0),
            origins: unique(lists.1.clone()),
            embed: unique(lists.1),
            disk_paths: unique(paths.0),
            root: paths.1,
            local_auth: if rest.0 { LocalAuth::Off } else { LocalAuth::Uid },
            memory: rest.1,
            log: rest.2.into(),
            collectors: std::iter::zip(KNOWN_COLLECTORS, collectors)
                .map(|(name, (enabled, every, deadline))| {
                    let path = paths.2.iter().map(|path| vec![path.to_string_lossy().into_owned()]);
                    let own = match name {
                        "trainium" => ["command", "config"].into_iter().zip(path.cycle()).collect(),
                        "nvidia" => ["library"].into_iter().zip(path).collect(),
                        "tpu" if !ports.is_empty() => [("endpoints", ports.clone())].into(),
                        _ => BTreeMap::new(),
                    };
                    CollectorConfig { name: name.into(), enabled, every, deadline, own }
                })
                .collect(),
            ..Config::default()
        }
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_the_same(config in any_config()) {
        let printed = config.to_toml();
        let read = run(&["--config", "printed"], &printed, None);
        prop_assert_eq!(read, Ok(Command::Serve(config)), "{}", printed);
    }

    #[test]
    fn no_arguments_and_no_file_panic(args in proptest::collection::vec("(--[a-z-]{0,12}=?)?.{0,12}", 0..4), file in ".{0,60}") {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let _ = run(&args, &file, None);
        let _ = run(&["--config", "f"], &file, None);
    }
}

#[test]
fn endpoints_come_from_flags_or_the_file() {
    let flags = config(&["--openmetrics", "node=http://127.0.0.1:9100/metrics,gpu=https://gpu7:9400/m?a=b"], "");
    let named: Vec<_> = flags.endpoints.iter().map(|e| (e.name.as_str(), e.url.as_str())).collect();
    assert_eq!(named, [("node", "http://127.0.0.1:9100/metrics"), ("gpu", "https://gpu7:9400/m?a=b")]);
    assert_eq!(flags.options().endpoints, flags.endpoints);
    let file = r#"
        [[openmetrics]]
        name = "dcgm"
        url = "http://127.0.0.1:9400/metrics"
        filters = ["DCGM_FI_.*"]
        headers = { Authorization = "Bearer secret" }
        every = "2s"
        [[openmetrics]]
        name = "vllm"
        url = "http://127.0.0.1:8000/metrics?key=secret"
        filters = { "vllm:.*" = { model_name = "^opt" }, "process_" = {} }
    "#;
    let read = config(&["--config", "w.toml"], file);
    let [dcgm, vllm] = &read.endpoints[..] else { panic!("{:?}", read.endpoints) };
    assert_eq!(dcgm.headers, [("Authorization".to_string(), "Bearer secret".to_string())]);
    assert_eq!((dcgm.filters[0].name.as_str(), dcgm.every), ("DCGM_FI_.*", Some(Duration::from_secs(2))));
    let labels: Vec<_> = vllm.filters.iter().map(|f| (f.name.as_str(), f.labels.len())).collect();
    assert_eq!(labels, [("process_", 0), ("vllm:.*", 1)]);
    let printed = read.to_toml();
    assert!(!printed.contains("secret") && printed.contains("Authorization = \"***\""), "{printed}");
    assert!(!format!("{read:?}").contains("secret"));
    let again = config(&["--config", "w.toml"], &printed);
    assert_eq!((&again.endpoints[0].filters, &again.endpoints[1].filters), (&dcgm.filters, &vllm.filters));
    // Flags replace the list of the file.
    assert_eq!(config(&["--config", "w.toml", "--openmetrics=a=http://a/"], file).endpoints.len(), 1);
}

#[test]
fn endpoints_that_cannot_be_say_why_and_no_secret() {
    for (flag, part) in [
        ("http://a/", "write a name and an address"),
        ("a=b", "write it like http://"),
        ("a=ftp://b/", "write it like http://"),
        ("a.b=http://b/", "letters, digits"),
        ("a=http://me:secret@b/", "which belong into a header"),
        ("a=http://b/ /?key=secret", "is not an address"),
        ("http://me:secret@b/?x=y", "letters, digits"),
        ("secret", "write a name and an address"),
        ("a=http://me:se,cret@b/", "write a name and an address"),
        ("a=http://a/,a=http://b/", "two endpoints have the name \"a\""),
    ] {
        let error = error(&["--openmetrics", flag], "");
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("secret") && !error.contains("cret@"), "{error}");
    }
    let word = error(&["--openmetrics", "a=http://a/", "b=http://me:secret@b/?key=secret"], "");
    assert!(word.contains("unrecognized subcommand") && !word.contains("secret"), "{word}");
    for written in [
        "[remote_write]\nurl = \"http://a/\"\nheaders = \"secret\"",
        "[remote_write]\nurl = \"http://a/\"\nheaders = [\"secret\"]",
        "[remote_write]\nurl = \"http://a/\"\nheaders = { a = secret }",
        "[remote_write]\nurl = \"http://a/\"\nheaders = { a = \"secret }",
        "[remote_write]\nurl = \"http://a/\"\nheaders = { a = [\"secret\"] }",
        "[remote_write]\nurl = \"http://a/\"\nheaders = { a = \"secret, expected x\", b = \"\\q\" }",
        "[remote_write]\nurl = [\"http://me:secret@a/\"]",
        "remote_write = \"http://me:secret@a/\"",
        "[[openmetrics]]\nname = \"a\"\nurl = \"http://a/\"\nheaders = \"secret\"",
        "[[openmetrics]]\nname = \"http://me:secret@a/\"\nurl = \"http://a/\"",
        "openmetrics = \"a=http://me:secret@a/\"",
        "origins = \"http://me:secret@a/\"",
        "port = \"secret\"",
    ] {
        let error = file_error(written);
        assert!(error.contains("w.toml, line ") && !error.contains("secret"), "{written}: {error}");
    }
    for (keys, part) in [
        ("filters = [\"a(\"]", "is not a regular expression"),
        ("filters = 3", "filters must be a list"),
        ("filters = { a = \"b\" }", "filters must be a list"),
        ("headers = { \"a b\" = \"secret\" }", "the header \"a b\" is invalid"),
        ("headers = { Token = 12345 }", "write it in quotation marks"),
        ("every = \"1\"", "is not a duration"),
        ("evry = \"1s\"", "did you mean every?"),
        ("url = \"x\"", "duplicate key"),
    ] {
        let error = file_error(&format!("port = 1\n[[openmetrics]]\nname = \"a\"\nurl = \"http://a/\"\n{keys}\n"));
        assert!(error.contains(part) && error.contains("w.toml, line "), "{error}");
        assert!(!error.contains("secret") && !error.contains("12345"), "{error}");
    }
}

#[test]
fn the_environment_names_the_hub_of_an_agent_where_nothing_else_does() {
    let hubs = |args: &[&str], hub: &str| {
        let args = std::iter::once("watchglass").chain(args.iter().copied()).map(OsString::from);
        let env = |name: &str| match name {
            "WATCHGLASS_HUB" => Some(hub.to_string()),
            "WATCHGLASS_KEY_FILE" => Some("/run/secrets/join".to_string()),
            _ => None,
        };
        parse_with(args, &env, &|_| Ok(String::new()), known()).map(|command| match command {
            Command::Agent { config, .. } | Command::Serve(config) => config.hubs,
            other => panic!("{other:?}"),
        })
    };
    let of = |hubs: Result<Vec<HubEntry>, ConfigError>| -> Vec<String> {
        hubs.expect("a configuration").iter().map(|hub| hub.url().to_string()).collect()
    };
    assert_eq!(of(hubs(&["agent"], "https://a")), ["https://a"]);
    assert_eq!(of(hubs(&["agent", "--hub", "https://b"], "https://a")), ["https://b"]);
    assert_eq!(of(hubs(&["serve"], "https://a")), [""; 0], "a page alone sends nothing to anybody");
    let found = hubs(&["agent"], "https://a").expect("a configuration").remove(0);
    assert_eq!(found.key, Some(KeyFrom::File("/run/secrets/join".into())));
    assert!(hubs(&["agent"], "watch.example.org").expect_err("no address").to_string().contains("WATCHGLASS_HUB"));
}
