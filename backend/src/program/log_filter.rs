//! The filter of the log: the directives of `--log`, in which `watchglass` stands for all our crates.

use tracing_subscriber::EnvFilter;

/// The name in directives for all of [`CRATES`].
const OURS: &str = "watchglass";

/// Our crates that log.
const CRATES: [&str; 9] = ["backend", "cluster", "fleet", "jobs", "providers", "stream", "team", "uplink", "watch"];

/// The filter of `text`; the filter `info` if it is invalid.
pub(super) fn filter(text: &str) -> EnvFilter {
    let filter = EnvFilter::try_new(spread(text)).unwrap_or_else(|_| EnvFilter::new("info"));
    // The NATS client logs each of its attempts; we log the relevant ones ourselves.
    match "async_nats=error".parse() {
        Ok(quiet) if !text.contains("async_nats") => filter.add_directive(quiet),
        _ => filter,
    }
}

/// The directives, with one for each of our crates in place of one for `watchglass`.
fn spread(text: &str) -> String {
    // A comma may separate the fields of a span, which are in braces. Users of that syntax name crates.
    if text.contains('{') {
        return text.to_string();
    }
    let each = text.split(',').flat_map(|directive| match directive.trim().split_once('=') {
        Some((OURS, level)) => CRATES.map(|name| format!("{name}={level}")).to_vec(),
        _ => vec![directive.to_string()],
    });
    each.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_name_stands_for_its_crates() {
        assert_eq!(
            spread("warn,watchglass=debug"),
            "warn,backend=debug,cluster=debug,fleet=debug,jobs=debug,providers=debug,stream=debug,team=debug,\
             uplink=debug,watch=debug"
        );
        for other in ["info", "warn,stream=trace", "watchglass", "warn,backend[tick{a,watchglass=debug}]=trace"] {
            assert_eq!(spread(other), other);
        }
    }

    #[test]
    fn each_crate_that_logs_is_named() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let manifests =
            entries.chain([folder.to_path_buf()]).map(|path| std::fs::read_to_string(path.join("Cargo.toml")));
        let logs = manifests.flatten().filter(|text| text.contains("\ntracing.workspace"));
        let mut names: Vec<String> = logs
            .map(|text| {
                let lib = text.split("[lib]").nth(1).expect("a library");
                lib.split('"').nth(1).expect("its name").to_string()
            })
            .collect();
        names.sort();
        assert_eq!(names, CRATES);
    }
}
