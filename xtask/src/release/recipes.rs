//! Recipes of package managers, from one table: Homebrew, conda, Nix and the AUR. Each installs the archive of a release
//! and compiles nothing.

use crate::exec::{cmd, find};
use crate::paths;
use crate::steps::Done;
use std::path::Path;

/// Description of the program in all recipes.
const SUMMARY: &str = "Live dashboard for the machines that train models";
/// Minimum version of glibc, as the binary is linked.
const GLIBC: &str = "2.17";

/// A recipe.
struct Recipe {
    /// Its path below the folder of recipes.
    path: &'static str,
    /// Its text, with names in place of the values.
    template: &'static str,
    /// Programs that check it, best first, with their arguments; `FILE` stands for its path.
    linters: &'static [(&'static str, &'static [&'static str])],
}

const RECIPES: [Recipe; 4] = [
    Recipe {
        path: "homebrew/watchglass.rb",
        template: include_str!("../../release/watchglass.rb"),
        linters: &[("brew", &["style", "FILE"]), ("ruby", &["-wc", "FILE"])],
    },
    Recipe {
        path: "conda/recipe.yaml",
        template: include_str!("../../release/recipe.yaml"),
        linters: &[("rattler-build", &["build", "--render-only", "--recipe", "FILE"])],
    },
    Recipe {
        path: "nix/flake.nix",
        template: include_str!("../../release/flake.nix"),
        linters: &[("nix-instantiate", &["--parse", "FILE"])],
    },
    Recipe {
        path: "aur/PKGBUILD",
        template: include_str!("../../release/PKGBUILD"),
        linters: &[("namcap", &["FILE"]), ("bash", &["-n", "FILE"])],
    },
];

/// The archive of a release for one processor.
pub struct Archive {
    /// The processor, as in the target triple.
    pub arch: String,
    /// Name of the file.
    pub file: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
}

/// A release as the recipes have it.
pub struct Published {
    /// The version, without a `v`.
    pub version: String,
    /// Address of the project at its forge, without a slash at the end.
    pub forge: String,
    /// The archives; at least one.
    pub archives: Vec<Archive>,
}

impl Published {
    /// Writes all recipes into a folder, and checks each with its linter.
    pub fn write(&self, folder: &Path) -> Result<Done, String> {
        let mut unchecked = Vec::new();
        for recipe in &RECIPES {
            let path = folder.join(recipe.path);
            paths::write(&path, &self.fill(recipe.template)?)?;
            match recipe.linters.iter().find_map(|(program, args)| Some((find(program)?, args))) {
                Some((program, args)) => {
                    let file = path.display().to_string();
                    let args = args.iter().map(|arg| if *arg == "FILE" { file.as_str() } else { arg });
                    cmd(program).args(args).output()?;
                }
                None => {
                    let names: Vec<&str> = recipe.linters.iter().map(|(program, _)| *program).collect();
                    unchecked.push(format!("{} ({})", recipe.path, names.join(" or ")));
                }
            }
        }
        let written = format!("{} recipes in {}", RECIPES.len(), folder.display());
        Ok(match unchecked.is_empty() {
            true => Done::Now(written),
            false => Done::But(format!("no linter was found for {}; {written}", unchecked.join(", "))),
        })
    }

    /// A template with its values. The lines between `@EACH@` and `@END@` stand once for each archive.
    fn fill(&self, template: &str) -> Result<String, String> {
        let (mut text, mut block): (String, Option<String>) = (String::new(), None);
        // Homebrew wants on_arm before on_intel.
        let mut archives: Vec<&Archive> = self.archives.iter().collect();
        archives.sort_by(|one, other| one.arch.cmp(&other.arch));
        for line in template.lines() {
            match (line, &mut block) {
                ("@EACH@", None) => block = Some(String::new()),
                ("@END@", Some(lines)) => {
                    text.extend(archives.iter().map(|archive| self.fill_block(lines, archive)));
                    block = None;
                }
                (line, Some(lines)) => *lines += &format!("{line}\n"),
                (line, None) => text += &format!("{line}\n"),
            }
        }
        let arches: Vec<String> = archives.iter().map(|archive| format!("'{}'", archive.arch)).collect();
        let text = text
            .replace("@SUMMARY@", SUMMARY)
            .replace("@GLIBC@", GLIBC)
            .replace("@FORGE@", &self.forge)
            .replace("@VERSION@", &self.version)
            .replace("@ARCHES@", &arches.join(" "));
        match text.split('@').nth(1).filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')) {
            Some(name) => Err(format!("a recipe has the unknown name @{name}@")),
            None => Ok(text),
        }
    }

    fn fill_block(&self, lines: &str, archive: &Archive) -> String {
        let is_arm = archive.arch == "aarch64";
        let url = format!("{}/releases/download/v{}/{}", self.forge, self.version, archive.file);
        lines
            .replace("@ARCH@", &archive.arch)
            .replace("@URL@", &url)
            .replace("@SHA256@", &archive.sha256)
            .replace("@HOMEBREW@", if is_arm { "on_arm" } else { "on_intel" })
            .replace("@CONDA@", if is_arm { "linux-aarch64" } else { "linux-64" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(arches: &[&str]) -> Published {
        let archive = |arch: &&str| Archive {
            arch: arch.to_string(),
            file: format!("watchglass-1.2.3-{arch}-unknown-linux-gnu.tar.gz"),
            sha256: if *arch == "aarch64" { "a" } else { "b" }.repeat(64),
        };
        let archives = arches.iter().map(archive).collect();
        Published { version: "1.2.3".into(), forge: "https://forge.example.org/watchglass".into(), archives }
    }

    #[test]
    fn each_recipe_has_the_version_and_each_archive_with_its_sum() {
        for recipe in &RECIPES {
            let both = published(&["x86_64", "aarch64"]).fill(recipe.template).expect(recipe.path);
            for word in ["1.2.3", SUMMARY, &"a".repeat(64), &"b".repeat(64)] {
                assert!(both.contains(word), "{}: {word}", recipe.path);
            }
            let url = "https://forge.example.org/watchglass/releases/download/v1.2.3/watchglass-1.2.3-aarch64-unknown";
            assert_eq!(both.matches(url).count(), 1, "{}", recipe.path);
            let one = published(&["x86_64"]).fill(recipe.template).expect(recipe.path);
            assert!(!one.contains("aarch64") && !one.contains("on_arm"), "{}", recipe.path);
            assert!(!one.contains('@') && one.ends_with('\n'), "{}: {one}", recipe.path);
        }
        let wrong = published(&["x86_64"]).fill("a\n@VERSON@\n").expect_err("a name that nobody fills");
        assert!(wrong.contains("@VERSON@"), "{wrong}");
    }

    #[test]
    fn recipes_are_as_their_package_managers_want_them() {
        let both = published(&["x86_64", "aarch64"]);
        let [brew, _, _, aur] = RECIPES.map(|recipe| both.fill(recipe.template).expect(recipe.path));
        // The order of FormulaAudit/ComponentsOrder, which `brew style` checks in a tap.
        let at = |word: &str| brew.find(word).unwrap_or_else(|| panic!("no {word} in {brew}"));
        assert!(at("depends_on") < at("on_arm do") && at("on_arm do") < at("on_intel do"), "{brew}");
        // Two licenses in a list are both in force; either of them is one expression.
        assert!(aur.contains("license=('MIT OR Apache-2.0')") && aur.contains("arch=('aarch64' 'x86_64')"), "{aur}");
    }

    #[test]
    fn recipes_install_files_that_the_archive_has() {
        let contents = paths::read(&paths::root().join("xtask/dist/contents.txt")).expect("the list");
        let has = |name: &str| contents.lines().any(|line| line == format!("archive NAME/{name}"));
        for recipe in &RECIPES {
            let words = recipe.template.split([' ', '"', '\'', ',', '(', ')', '\n']);
            let files: Vec<&str> = words
                .filter(|word| {
                    word.starts_with("completions/")
                        || word.starts_with("LICENSE-")
                        || ["README.md", "THIRD-PARTY.md"].contains(word)
                })
                .collect();
            assert!(files.len() >= 2 || recipe.path.contains("nix"), "{}: {files:?}", recipe.path);
            for file in files {
                assert!(has(file), "{}: {file} is not in the archive", recipe.path);
            }
        }
        assert!(has("watchglass") && contents.contains("archive NAME/man/watchglass.1\n"));
    }

    #[test]
    fn recipes_are_checked_by_programs_that_are_here() {
        let folder = std::env::temp_dir().join(format!("watchglass-recipes-{}", std::process::id()));
        published(&["x86_64", "aarch64"]).write(&folder).expect("they are well formed");
        assert!(folder.join("aur/PKGBUILD").is_file());
        paths::remove(&folder).expect("removed");
    }
}
