//! Build information, for `--version` and `/metrics`.

use std::fmt;

/// Build information of the program. Unknown parts are absent: only packages are built from a known commit.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo {
    /// Version of the program.
    pub version: &'static str,
    /// Abbreviated commit.
    pub commit: Option<&'static str>,
    /// Day of the commit, as 2026-11-23.
    pub date: Option<&'static str>,
    /// Target triple.
    pub target: &'static str,
}

/// Build information of this program.
pub const BUILD: BuildInfo = BuildInfo {
    version: env!("CARGO_PKG_VERSION"),
    commit: option_env!("WATCHGLASS_COMMIT"),
    date: option_env!("WATCHGLASS_DATE"),
    target: env!("WATCHGLASS_TARGET"),
};

impl BuildInfo {
    /// The text of `--version` for a program with or without the page.
    pub fn of_program(&self, with_page: bool) -> String {
        let page = if with_page { "with the page" } else { "without the page" };
        let text = self.to_string();
        format!("{}, {page})", text.strip_suffix(')').unwrap_or(&text))
    }
}

impl fmt::Display for BuildInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit = self.commit.into_iter().chain(self.date);
        let parts: Vec<&str> = commit.chain([self.target]).collect();
        write!(f, "{} ({})", self.version, parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_left_out() {
        let known = BuildInfo { version: "1.2.3", commit: Some("0123abcd"), date: Some("2026-11-23"), target: "t" };
        assert_eq!(known.to_string(), "1.2.3 (0123abcd, 2026-11-23, t)");
        assert_eq!(known.of_program(true), "1.2.3 (0123abcd, 2026-11-23, t, with the page)");
        assert_eq!(known.of_program(false), "1.2.3 (0123abcd, 2026-11-23, t, without the page)");
        assert_eq!(BuildInfo { commit: None, date: None, ..known }.to_string(), "1.2.3 (t)");
    }
}
