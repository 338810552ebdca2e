//! The table of operations as others read it: the reference page.

#[test]
fn the_reference_page_is_what_the_table_gives() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/api.md");
    let reference = api::reference();
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &reference).expect("the document is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        written, reference,
        "docs/reference/api.md is stale: UPDATE=1 cargo test -p watchglass-tests operations"
    );
}
