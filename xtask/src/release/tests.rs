//! Arguments, notes, gathered files, sums and commands of a release.

use super::*;
use crate::exec::find;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_version_is_three_numbers() {
    for version in ["0.1.0", "10.20.30"] {
        assert!(is_version(version), "{version}");
    }
    for wrong in ["", "1.2", "1.2.3.4", "v1.2.3", "1.2.3-rc1", "01.2.3", "1..3", "--built"] {
        assert!(!is_version(wrong), "{wrong}");
    }
    let all = asked(&words("1.2.3 --forge https://f.example.org/w/ --built --minisign-key k")).expect("all are known");
    let forge = Some("https://f.example.org/w".to_owned());
    let expected =
        Asked { version: "1.2.3".into(), forge, built: true, minisign: Some("k".into()), ..Asked::default() };
    assert_eq!(all, expected);
    for wrong in ["", "--built", "1.2.3 1.2.4", "1.2.3 --forge", "1.2.3 --publish"] {
        assert_eq!(asked(&words(wrong)).expect_err(wrong).status, 2);
    }
}

#[test]
fn notes_are_the_section_of_the_version_alone() {
    let changelog = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-05-01\n\n### Added\n\n- A line.\n\n## [1.2.2] - 2026-04-01\n\n- Old.\n";
    assert_eq!(section(changelog, "1.2.3").expect("notes"), "### Added\n\n- A line.\n");
    assert_eq!(section(changelog, "1.2.2").expect("notes"), "- Old.\n");
    for (text, version, why) in [
        (changelog, "1.2.4", "has no section"),
        (changelog, "1.2", "has no section"),
        ("## [1.0.0]\n\n- A line.\n", "1.0.0", "has no date"),
        ("## [1.0.0] - 2026-05-01\n\n## [0.9.0] - 2026-01-01\n- Old.\n", "1.0.0", "says nothing"),
    ] {
        let error = section(text, version).expect_err(why);
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn an_address_of_the_web_is_made_of_a_remote() {
    for (remote, address) in [
        ("git@forge.example.org:lab/watchglass.git", Some("https://forge.example.org/lab/watchglass")),
        ("https://forge.example.org/lab/watchglass.git", Some("https://forge.example.org/lab/watchglass")),
        ("https://user:secret@forge.example.org/lab/w.git", None),
        ("/srv/git/watchglass", None),
        ("file:///srv/git/watchglass", None),
    ] {
        assert_eq!(web_address(remote).as_deref(), address, "{remote}");
    }
}

/// A folder of this test, empty.
fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("watchglass-release-{}-{name}", std::process::id()));
    paths::remove(&folder).expect("removed");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn files_of_two_processors_are_gathered_and_those_that_differ_get_its_name() {
    let (one, two, out) = (scratch("one"), scratch("two"), scratch("out"));
    for (folder, arch) in [(&one, "x86_64"), (&two, "aarch64")] {
        let archive = format!("watchglass-1.2.3-{arch}-unknown-linux-gnu.tar.gz");
        let same = "watchglass-1.2.3.cdx.json";
        for (name, text) in [(archive.as_str(), arch), ("THIRD-PARTY.md", arch), (same, "same"), (SUMS, "old")] {
            paths::write(&folder.join(name), text).expect("written");
        }
        gather(folder, &out, arch).expect("gathered");
    }
    let archives = archives("1.2.3", &out).expect("two");
    assert_eq!(archives.iter().map(|archive| archive.arch.as_str()).collect::<Vec<_>>(), ["x86_64", "aarch64"]);
    let line = cmd("sha256sum").arg(&archives[1].file).dir(&out).output().expect("a sum");
    assert!(archives[1].sha256.len() == 64 && line.starts_with(&archives[1].sha256), "{line}");
    let names = files(&out).expect("a list");
    assert!(names.contains(&"THIRD-PARTY-aarch64.md".to_owned()) && !names.contains(&SUMS.to_owned()), "{names:?}");
    assert_eq!(names.iter().filter(|name| name.contains("cdx")).count(), 1, "{names:?}");

    sums(&out).expect("sums");
    cmd("sha256sum").args(["--check", "--strict", "--quiet", SUMS]).dir(&out).run().expect("they hold");
    sums(&out).expect("sums without themselves");
    assert!(!paths::read(&out.join(SUMS)).expect("a file").contains(SUMS));
    for folder in [one, two, out] {
        paths::remove(&folder).expect("removed");
    }
}

#[test]
fn checksums_are_signed_by_a_key_that_is_given_and_by_no_other() {
    let out = scratch("signed");
    paths::write(&out.join("a.tar.gz"), "a").expect("written");
    sums(&out).expect("sums");
    assert!(matches!(sign(&Asked::default(), &out), Ok(Done::Without(_))));
    let missing = Asked { minisign: Some(out.join("none")), ..Asked::default() };
    sign(&missing, &out).expect_err("there is no such key");
    if find("minisign").is_some() {
        let (key, public) = (out.join("key"), out.join("key.pub"));
        cmd("minisign").args(["-G", "-W", "-s"]).arg(&key).arg("-p").arg(&public).run().expect("a key");
        let asked = Asked { version: "1.2.3".into(), minisign: Some(key), ..Asked::default() };
        sign(&asked, &out).expect("signed");
        let check = || cmd("minisign").args(["-V", "-p"]).arg(&public).args(["-m", SUMS]).dir(&out).output();
        assert!(check().expect("it holds").contains("watchglass 1.2.3"));
        paths::write(&out.join(SUMS), "changed").expect("written");
        check().expect_err("a changed list");
    }
    paths::remove(&out).expect("removed");
}

#[test]
fn the_commands_name_every_file_and_publish_nothing_by_themselves() {
    let files: Vec<String> = [
        "NOTES.md",
        "SHA256SUMS",
        "watchglass-1.2.3-amd64.oci.tar",
        "watchglass-1.2.3-arm64.oci.tar",
        "watchglass-1.2.3-py3-none-manylinux2014_x86_64.whl",
    ]
    .map(str::to_owned)
    .into();
    let text = commands("1.2.3", Some("https://forge.example.org/w"), &files);
    for line in [
        "git push origin v1.2.3\n",
        "twine upload dist/watchglass-1.2.3-py3-none-manylinux2014_x86_64.whl\n",
        "docker://REGISTRY/watchglass:1.2.3-arm64\n",
        "podman manifest create watchglass:1.2.3 REGISTRY/watchglass:1.2.3-amd64 REGISTRY/watchglass:1.2.3-arm64\n",
        "--notes-file dist/NOTES.md dist/SHA256SUMS dist/watchglass-1.2.3-amd64.oci.tar",
        "nix/flake.nix",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(commands("1.2.3", None, &files).contains("add --forge URL"));
}
