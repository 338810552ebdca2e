//! The rules of OpenMetrics in small pages of our own, each the smallest that keeps or breaks one. Cases that the
//! specification leaves open follow the parser of Prometheus' Python client.

use super::*;

/// Whether the page keeps the rules; its `# EOF` is added.
fn keeps(page: &str) -> bool {
    match check(&format!("{page}# EOF\n")) {
        Ok(()) => true,
        Err(Bad::Rule(..)) => false,
        Err(other) => panic!("{other:?}: {page}"),
    }
}

fn all(pages: &[&str], kept: bool) {
    for page in pages {
        assert_eq!(keeps(page), kept, "{page}");
    }
}

#[test]
fn samples_are_one_blank_apart_and_whole() {
    all(
        &[
            "",
            "x 1\n",
            "x{} 1\n",
            "x -Inf\n",
            "x NaN\n",
            "x 1e-3 17\n",
            "x 1 17.25\n",
            "x 1 1.5e9\n",
            "x{l=\"# {} \\\"\\n\"} 1\n",
            "x{l=\"\",m=\"1\"} 1\n",
            "{\"x y\",\"l.m\"=\"1\"} 1\n",
            "x 1\ny 2\n",
        ],
        true,
    );
    all(
        &[
            "x\n",
            "x \n",
            "x  1\n",
            " x 1\n",
            "x 1 \n",
            "x 1\t\n",
            "x\t1\n",
            "x 1\r\n",
            "\n",
            "x one\n",
            "x 0x1\n",
            "x 1_0\n",
            "x 1 soon\n",
            "x 1 NaN\n",
            "x 1 +Inf\n",
            "x 1 1.2.3\n",
            "x 1 2 3\n",
            "2x 1\n",
            "x-y 1\n",
            "x.y 1\n",
            "x{l=1} 1\n",
            "x{l='1'} 1\n",
            "x{l} 1\n",
            "x{l=\"1} 1\n",
            "x{l=\"1\"}1\n",
            "x{l=\"1\",} 1\n",
            "x{l=\"1\",,m=\"1\"} 1\n",
            "x{l=\"1\"m=\"1\"} 1\n",
            "x{2=\"1\"} 1\n",
            "x{l=\"1\",l=\"1\"} 1\n",
            "x{__l=\"1\"} 1\n",
            "x{,} 1\n",
            "x{,l=\"1\"} 1\n",
            "x{__name__=\"y\"} 1\n",
        ],
        false,
    );
}

#[test]
fn nothing_stands_behind_the_end() {
    assert_eq!(check("x 1\n# EOF"), Ok(()));
    for page in ["", "x 1\n", "x 1\n# EO", "x 1\n# EOFx"] {
        assert_eq!(check(page), Err(Bad::Truncated), "{page}");
    }
    for page in ["# EOF\nx 1\n# EOF\n", "x 1\n# EOF\n\n"] {
        assert!(matches!(check(page), Err(Bad::Rule(2 | 3, _))), "{page}");
    }
    assert_eq!(check("x 1\ny 1 \n# EOF\n"), Err(Bad::Rule(2, "no time stamp")));
}

#[test]
fn metadata_comes_once_and_first() {
    all(
        &[
            "# HELP x Some text\n# TYPE x gauge\nx 1\n",
            "# HELP x \n",
            "# TYPE x unknown\nx 1\n",
            "# TYPE x_seconds gauge\n# UNIT x_seconds seconds\n",
            "# TYPE x gauge\n# UNIT x \n",
            "# TYPE \"x y\" counter\n{\"x y_total\"} 1\n",
        ],
        true,
    );
    all(
        &[
            "# HELP\n",
            "# HELP x\n",
            "# TYPE x\n",
            "# TYPE x untyped\n",
            "# TYPE x gauge \n",
            "# TYPE x thing\n",
            "# UNIT x\n",
            "# NOTE x y\n",
            "#HELP x y\n",
            "# HELP x.y z\n",
            "# TYPE x gauge\n# TYPE x gauge\n",
            "# HELP x a\n# HELP x a\n",
            "# UNIT x_s s\n# UNIT x_s s\n",
            "x 1\n# TYPE x gauge\n",
            "# TYPE x gauge\nx 1\n# HELP x late\n",
            "# UNIT x seconds\n",
            "# TYPE x_u info\n# UNIT x_u u\n",
            "# TYPE x_u stateset\n# UNIT x_u u\n",
        ],
        false,
    );
}

#[test]
fn a_name_belongs_to_one_family() {
    all(&["# TYPE x counter\nx_total 1\nx_created 1\n# TYPE x_count gauge\nx_count 1\n"], true);
    all(
        &[
            "# TYPE x counter\nx 1\n",
            "x 1\ny 1\nx 2\n",
            "# TYPE x gauge\n# TYPE y gauge\n# TYPE x gauge\n",
            "# TYPE x_created gauge\n# TYPE x counter\n",
            "# TYPE x counter\n# TYPE x_total gauge\n",
            "# TYPE x summary\n# TYPE x_sum gauge\n",
        ],
        false,
    );
}

#[test]
fn values_are_such_as_their_type_allows() {
    all(
        &[
            "# TYPE x counter\nx_total +Inf\n",
            "# TYPE x gauge\nx -1\n",
            "# TYPE x info\nx_info{v=\"1\"} 1\nx_info{v=\"2\"} 1\n",
            "# TYPE x stateset\nx{x=\"a\"} 0\nx{x=\"b\"} 1\n",
            "# TYPE x summary\nx{quantile=\"0.5\"} NaN\nx_sum 2\nx_count 3\n",
        ],
        true,
    );
    all(
        &[
            "# TYPE x counter\nx_total -1\n",
            "# TYPE x counter\nx_total NaN\n",
            "# TYPE x info\nx_info 2\n",
            "# TYPE x stateset\nx 1\n",
            "# TYPE x stateset\nx{x=\"a\"} 2\n",
            "# TYPE x summary\nx 1\n",
            "# TYPE x summary\nx{quantile=\"2\"} 1\n",
            "# TYPE x summary\nx{quantile=\"NaN\"} 1\n",
            "# TYPE x summary\nx{quantile=\"0.5\"} -1\n",
            "# TYPE x summary\nx_sum -1\n",
            "# TYPE x summary\nx_count 1.5\n",
        ],
        false,
    );
}

/// A histogram's lines without the name: `le` and count, or suffix and value.
fn histogram(kind: &str, lines: &[(&str, &str)]) -> String {
    let mut page = format!("# TYPE x {kind}\n");
    for (what, value) in lines {
        page += &match what.strip_prefix('_') {
            Some(ending) => format!("x_{ending} {value}\n"),
            None => format!("x_bucket{{le=\"{what}\"}} {value}\n"),
        };
    }
    page
}

#[test]
fn histograms_are_whole_and_in_order() {
    for (kind, lines, kept) in [
        ("histogram", &[("1", "2"), ("+Inf", "3"), ("_count", "3"), ("_sum", "9")] as &[_], true),
        ("histogram", &[("_sum", "9"), ("_count", "3"), ("1", "2"), ("1e1", "2"), ("+Inf", "3")], true),
        ("histogram", &[("+Inf", "3")], true),
        ("histogram", &[("-1", "1"), ("+Inf", "3")], true),
        ("gaugehistogram", &[("-1", "1"), ("+Inf", "3"), ("_gcount", "3"), ("_gsum", "-9")], true),
        ("histogram", &[("1", "2")], false),
        ("histogram", &[("_sum", "2")], false),
        ("histogram", &[("+Inf", "3"), ("_count", "3")], false),
        ("histogram", &[("+Inf", "3"), ("_sum", "3")], false),
        ("histogram", &[("+Inf", "3"), ("_count", "2"), ("_sum", "9")], false),
        ("histogram", &[("2", "1"), ("1", "1"), ("+Inf", "3")], false),
        ("histogram", &[("1", "2"), ("2", "1"), ("+Inf", "3")], false),
        ("histogram", &[("inf", "3")], false),
        ("histogram", &[("NaN", "3"), ("+Inf", "3")], false),
        ("histogram", &[("one", "3"), ("+Inf", "3")], false),
        ("histogram", &[("+Inf", "1.5")], false),
        ("histogram", &[("+Inf", "-1")], false),
        ("histogram", &[("-1", "1"), ("+Inf", "3"), ("_count", "3"), ("_sum", "9")], false),
        ("gaugehistogram", &[("1", "1"), ("+Inf", "3"), ("_gcount", "3"), ("_gsum", "-9")], false),
        ("gaugehistogram", &[("+Inf", "3"), ("_gsum", "9")], false),
        ("gaugehistogram", &[("+Inf", "3"), ("_gcount", "3")], false),
        ("gaugehistogram", &[("+Inf", "3"), ("_gcount", "3"), ("_gsum", "NaN")], false),
    ] {
        assert_eq!(keeps(&histogram(kind, lines)), kept, "{kind} {lines:?}");
    }
    all(&["# TYPE x histogram\nx_bucket 1\n"], false);
}

#[test]
fn a_native_histogram_has_its_figures() {
    const FIGURES: &str =
        "{count:4,sum:2.5,schema:0,zero_threshold:0.1,zero_count:1,positive_spans:[0:2],positive_deltas:[1,1]}";
    let page = |kind: &str, line: &str| format!("# TYPE x {kind}\n{line}\n");
    assert!(keeps(&page("histogram", &format!("x {FIGURES}"))));
    assert!(keeps(&page("histogram", &format!("x{{l=\"1\"}} {FIGURES}\nx{{l=\"2\"}} {FIGURES}"))));
    assert!(!keeps(&page("gauge", &format!("x {FIGURES}"))));
    assert!(!keeps(&page("histogram", &format!("x_count {FIGURES}"))));
    assert!(!keeps(&page("histogram", "x {count:4}")));
}

#[test]
fn groups_stand_together_and_their_times_do_not_go_back() {
    all(
        &[
            "# TYPE x gauge\nx 1 1\nx 2 2\n",
            "# TYPE x gauge\nx 1 -1\nx 2 -0.5\n",
            "# TYPE x gauge\nx 1\nx 1\n",
            "# TYPE x gauge\nx{l=\"1\",m=\"2\"} 1 1\nx{m=\"2\",l=\"1\"} 1 2\n",
            "# TYPE x summary\nx{quantile=\"0.1\"} 1\nx_sum 1\nx{quantile=\"0.9\"} 1\n",
        ],
        true,
    );
    all(
        &[
            "# TYPE x gauge\nx 1 2\nx 2 1\n",
            "# TYPE x gauge\nx 1 -1\nx 2 -1.5\n",
            "# TYPE x gauge\nx 1\nx 2 1\n",
            "# TYPE x gauge\nx 1 1\nx 2\n",
            "# TYPE x gauge\nx{l=\"1\"} 1\nx{l=\"2\"} 1\nx{l=\"1\"} 1\n",
            "# TYPE x summary\nx_sum{l=\"1\"} 1\nx_sum{l=\"2\"} 1\nx_count{l=\"1\"} 1\n",
        ],
        false,
    );
}

#[test]
fn exemplars_stand_where_they_may_and_are_short() {
    let counter = |behind: &str| format!("# TYPE x counter\nx_total 1{behind}\n");
    for behind in [" # {} 1", " # {id=\"a}b\"} 0.5 12", " 17 # {id=\"\"} 1 17.5"] {
        assert!(keeps(&counter(behind)), "{behind}");
    }
    let long = format!(" # {{id=\"{}\"}} 1", "é".repeat(126));
    assert!(keeps(&counter(&long)));
    let longer = long.replace("id=", "ids=");
    for behind in [
        &longer,
        " #",
        " # ",
        "# {} 1",
        " #{} 1",
        " # {}1",
        " # {} 1 ",
        " # {} 1 2 ",
        " # {} one",
        " # {} 1 Inf",
        " # id=\"a\"} 1",
        " 1 id=\"a\"} 1",
        " # {id} 1",
        " # {\"id\"} 1",
    ] {
        assert!(!keeps(&counter(behind)), "{behind}");
    }
    all(
        &[
            "# TYPE x gauge\nx 1 # {} 1\n",
            "# TYPE x counter\nx_created 1 # {} 1\n",
            "# TYPE x info\nx_info 1 # {} 1\n",
            "# TYPE x stateset\nx{x=\"a\"} 1 # {} 1\n",
            "# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1\nx_count 1 # {} 1\nx_sum 1\n",
        ],
        false,
    );
    all(&["# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1 # {} 1\n"], true);
}

proptest::proptest! {
    #[test]
    fn any_text_is_looked_through_without_a_panic(
        lines in proptest::collection::vec("(# (TYPE|UNIT|HELP) [ab]{1,2} (counter|histogram|summary|stateset|s)|[ab]{1,2}(_total|_bucket|_sum)?(\\{(le|a)=\"[^\"\n]{0,4}\"\\})? -?[0-9]{1,2}( [0-9])?|.{0,9})", 0..9),
    ) {
        let _ = check(&format!("{}\n# EOF\n", lines.join("\n")));
    }
}
