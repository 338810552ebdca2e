//! Arguments, notes, gathered files, sums and commands of a release.

use super::*;

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
        Asked { version: "1.2.3".into(), forge, built: true, minisign: Some(key_file("k")), ..Asked::default() };
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
        let (same, sbom) = ("LICENSE", "watchglass-1.2.3.cdx.json");
        for (name, text) in
            [(archive.as_str(), arch), ("THIRD-PARTY.md", arch), (same, "same"), (sbom, arch), (SUMS, "old")]
        {
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
    assert_eq!(names.iter().filter(|name| name.contains("LICENSE")).count(), 1, "{names:?}");
    for sbom in ["watchglass-1.2.3.cdx.json", "watchglass-1.2.3-aarch64.cdx.json"] {
        assert!(names.contains(&sbom.to_owned()), "{names:?}");
    }

    sums(&out).expect("sums");
    cmd("sha256sum").args(["--check", "--strict", "--quiet", SUMS]).dir(&out).run().expect("they hold");
    paths::write(&out.join("SHA256SUMS.minisig"), "of an earlier list").expect("written");
    sums(&out).expect("sums without themselves");
    assert!(!paths::read(&out.join(SUMS)).expect("a file").contains(SUMS));
    assert!(!out.join("SHA256SUMS.minisig").exists(), "it does not sign this list");
    for folder in [one, two, out] {
        paths::remove(&folder).expect("removed");
    }
}

#[test]
fn the_target_of_this_machine_is_built_first() {
    let [x86, arm] = TARGETS;
    assert_eq!((targets(x86, false), targets(arm, false)), (vec![x86, arm], vec![arm, x86]));
    assert_eq!(targets(arm, true), [arm]);
}

#[test]
fn files_of_another_version_are_no_release() {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let whole = names(&[
        "NOTES.md",
        "SHA256SUMS",
        "watchglass-1.2.3-amd64.oci.tar",
        "watchglass-1.2.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "watchglass-1.2.3-x86_64-unknown-linux-gnu.tar.gz",
        "watchglass-1.2.3.cdx.json",
        "watchglass_1.2.3-1_amd64.deb",
    ]);
    assert!(fit("1.2.3", &whole).is_ok());
    assert!(fit("1.2.4", &whole).is_err() && fit("1.2.30", &whole).is_err() && fit("11.2.3", &whole).is_err());
    for other in
        ["watchglass-1.2.2-arm64.oci.tar", "watchglass-1.2.3-dev-amd64.oci.tar", "watchglass_1.2.30-1_amd64.deb"]
    {
        let mut mixed = whole.clone();
        mixed.push(other.to_owned());
        let error = fit("1.2.3", &mixed).expect_err(other);
        assert!(error.contains(other) && error.contains("--built"), "{error}");
    }
    let error = fit("1.2.3", &whole[..3]).expect_err("no wheel");
    assert!(error.contains("*.whl"), "{error}");
}

#[test]
fn a_key_or_a_program_that_is_missing_is_told_before_the_build() {
    assert!(key_file("keys/k").is_absolute(), "the program that signs runs in dist/");
    assert!(matches!(keys(&Asked::default()), Ok(Done::Without(_))));
    let missing = Asked { cosign: Some(key_file("no/such/key")), ..Asked::default() };
    let error = keys(&missing).expect_err("there is no such key");
    assert!(error.contains("no/such/key") && error.contains("--cosign-key"), "{error}");
    if find("minisign").is_none() {
        let asked = Asked { minisign: Some(paths::root().join("Cargo.toml")), ..Asked::default() };
        let error = keys(&asked).expect_err("there is no such program");
        assert!(error.contains("minisign is missing"), "{error}");
    }
}

#[test]
fn checksums_are_signed_by_a_key_that_is_given_and_by_no_other() {
    let out = scratch("signed");
    paths::write(&out.join("a.tar.gz"), "a").expect("written");
    sums(&out).expect("sums");
    assert!(matches!(sign(&Asked::default(), &out), Ok(Done::Without(_))));
    // It publishes nothing that its user has not confirmed.
    assert_eq!(cosign(Path::new("k"), "b").line(), "cosign sign-blob --bundle b --key k SHA256SUMS");
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
    assert!(!commands("1.2.3", None, &files[4..]).contains("podman"), "there is no image");
}
