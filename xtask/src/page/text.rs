//! The page's script and style without what only people read: comments and white space.

/// The script without the classes that a dependency of leptos offers to other scripts: there is none. They stay where
/// something names them.
pub fn without_classes(script: &str) -> String {
    const CLASS: &str = "IntoUnderlying";
    let mut out = String::with_capacity(script.len());
    let mut until = None;
    for line in script.split_inclusive('\n') {
        if let Some(end) = until {
            if line.contains(end) {
                until = None;
            }
        } else if line.starts_with(&format!("export class {CLASS}")) {
            until = Some("if (Symbol.dispose)");
        } else if line.starts_with(&format!("const {CLASS}")) {
            until = Some("new FinalizationRegistry(");
        } else {
            out.push_str(line);
        }
    }
    if until.is_none() && !out.contains(CLASS) { out } else { script.to_owned() }
}

/// The script as wasm-bindgen writes it, without lines of comments and without indentation. A script with a text over
/// several lines is left as it is.
pub fn script(source: &str) -> String {
    if source.lines().any(|line| line.matches('`').count() % 2 == 1) {
        return source.to_owned();
    }
    let mut out = String::with_capacity(source.len());
    let mut in_comment = false;
    for line in source.lines().map(str::trim_start) {
        let starts = line.starts_with("/*");
        if in_comment || starts {
            in_comment = !line.trim_end().ends_with("*/");
        } else if !line.is_empty() && !line.starts_with("//") {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// A style sheet without comments, and with white space only where it says something. Quoted texts stay.
pub fn style(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut space = false;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, after)| after);
            space = true;
        } else if c.is_ascii_whitespace() {
            rest = &rest[1..];
            space = true;
        } else {
            let word = if c == '"' || c == '\'' { quoted(rest, c) } else { &rest[..c.len_utf8()] };
            if c == '}' && out.ends_with(';') {
                out.pop();
            }
            if space && !out.is_empty() && !out.ends_with(['{', '}', ';', ',', ':']) && !"{};,".contains(c) {
                out.push(' ');
            }
            out.push_str(word);
            rest = &rest[word.len()..];
            space = false;
        }
    }
    out
}

/// The quoted text at the start, to its end.
fn quoted(text: &str, quote: char) -> &str {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    });
    end.map_or(text, |(at, _)| &text[..=at])
}

#[cfg(test)]
mod tests {
    use super::{script, style, without_classes};

    #[test]
    fn a_style_keeps_what_it_says() {
        let source = "/* a */ .a > .b , .c:not(.d) :hover {\n  width: calc(100% - 2px); /* b */\n  content: \"a:  /* \\\" ; }\";\n}\n\
                      @media (max-width: 9px) { a { margin: 0 auto !important; } }\n";
        assert_eq!(
            style(source),
            ".a > .b,.c:not(.d) :hover{width:calc(100% - 2px);content:\"a:  /* \\\" ; }\"}\
             @media (max-width:9px){a{margin:0 auto !important}}"
        );
        assert_eq!(style("a { b: 'open"), "a{b:'open", "a fault of the sheet stays where it is");
        assert_eq!(style("a /* between */ b { c: d }"), "a b{c:d}");
    }

    #[test]
    fn classes_go_unless_they_are_used() {
        let class = "export class IntoUnderlyingSink {\n    free() {}\n}\n\
                     if (Symbol.dispose) IntoUnderlyingSink.prototype[Symbol.dispose] = 1;\n";
        let registry = "const IntoUnderlyingSinkFinalization = (typeof FinalizationRegistry === 'undefined')\n    ? {}\n\
                        : new FinalizationRegistry(ptr => 1);\n";
        assert_eq!(without_classes(&format!("{class}a();\n{registry}b();\n")), "a();\nb();\n");
        let used = format!("{class}new IntoUnderlyingSink();\n");
        assert_eq!(without_classes(&used), used);
    }

    #[test]
    fn a_script_loses_only_lines_that_say_nothing() {
        let source = "/**\n * @returns {number}\n */\nfunction a() {\n    // why\n    return '// b' + c; // d\n}\n/* e */\n\na();\n";
        assert_eq!(script(source), "function a() {\nreturn '// b' + c; // d\n}\na();\n");
        let over_lines = "const a = `b\n  // c`;";
        assert_eq!(script(over_lines), over_lines);
    }
}
