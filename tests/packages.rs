//! Additional files of the packages: completions and manual pages.

use watchglass_tests::programs;
use watchglass_tests::server::run;

fn printed(args: &[&str]) -> String {
    let output = run(args.iter().copied());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_shell_gets_its_completions() {
    for (shell, sign) in [
        ("bash", "complete -F _watchglass"),
        ("zsh", "#compdef watchglass"),
        ("fish", "complete -c watchglass"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = printed(&["completions", shell]);
        assert!(script.contains(sign) && script.contains("no-such-flag").eq(&false), "{shell}");
        assert!(script.contains("print-config") && script.contains("doctor"), "{shell}");
    }
    let output = run(["completions", "csh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bash"), "it says which shells there are");
}

#[test]
#[ignore = "needs bash"]
fn with_bash_words_are_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("watchglass");
    std::fs::write(&script, printed(&["completions", "bash"])).expect("written");
    let complete = |line: &str| {
        // Like readline: words, the index of the last one, and the function that was registered by `complete`.
        let asked = format!(
            "source {}; COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); \
             _watchglass watchglass \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let output = programs::run("bash", &["--norc", "--noprofile", "-c", &asked], "");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.is_empty(), "{line}: {complaint}");
        let words = String::from_utf8(output.stdout).expect("text");
        words.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(complete("watchglass to"), ["top"]);
    assert_eq!(complete("watchglass top --de"), ["--demo"]);
    assert_eq!(complete("watchglass top --li"), ["--light"]);
    assert_eq!(complete("watchglass --reten"), ["--retention"]);
    assert_eq!(complete("watchglass completions ba"), ["bash"]);
    assert!(complete("watchglass agents ''").contains(&"list".to_string()));
    assert_eq!(complete("watchglass top --remote-w"), Vec::<String>::new(), "a flag that means nothing there");
}

#[test]
fn the_manual_has_a_page_of_each_command() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH") && page.contains("retention") && page.contains("watchglass\\-top"), "{page}");
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("share/man1");
    let pages = pages.to_str().expect("plain letters");
    printed(&["man", pages]);
    let names: Vec<String> = std::fs::read_dir(pages)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("plain letters"))
        .collect();
    for name in ["watchglass.1", "watchglass-top.1", "watchglass-agents-list.1"] {
        assert!(names.iter().any(|known| known == name), "{name} is not among {names:?}");
    }
    let top = std::fs::read_to_string(format!("{pages}/watchglass-top.1")).expect("a page");
    assert!(top.contains("\\-\\-light") && !top.contains("remote\\-write"), "{top}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("written");
    let output = run(["man", file.join("x").to_str().expect("plain letters")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write into"));
}

#[test]
#[ignore = "needs man and groff"]
fn with_man_no_page_has_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    printed(&["man", folder.path().to_str().expect("plain letters")]);
    let pages: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    assert!(pages.len() > 20, "{pages:?}");
    for page in pages {
        let page = page.to_str().expect("plain letters");
        let output = programs::run("man", &["--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l", page], "");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaint.is_empty(), "{page}: {complaint}");
    }
}
