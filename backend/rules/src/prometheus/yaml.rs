//! YAML as a tree with lines, limited to the syntax of rule files. Aliases and deep nesting are refused, so an
//! untrusted file cannot expand while it is parsed.

use saphyr_parser::{Event, Parser};

/// Maximum nesting depth of a rule file.
const MAX_DEPTH: usize = 16;

/// A node of a file, and its first line, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub line: usize,
    pub what: YamlContent,
}

/// Content of a node. Numbers and words are strings alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlContent {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            YamlContent::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.what {
            YamlContent::Map(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> &[Node] {
        match &self.what {
            YamlContent::List(nodes) => nodes,
            _ => &[],
        }
    }
}

/// A node under construction.
enum Open {
    List(usize, Vec<Node>),
    /// The key whose value comes next follows the fields.
    Map(usize, Vec<(String, Node)>, Option<String>),
}

/// The documents of a file.
///
/// # Errors
/// The line, and the reason why it is not valid YAML of this subset.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, (usize, String)> {
    let (mut documents, mut open): (Vec<Node>, Vec<Open>) = (Vec::new(), Vec::new());
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| (error.marker().line(), format!("the file is not valid YAML: {}", error.info())))?;
        let line = span.start.line();
        let whole = match event {
            Event::Scalar(text, ..) => Node { line, what: YamlContent::Text(text.into_owned()) },
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= MAX_DEPTH {
                    return Err((line, format!("it is nested more than {MAX_DEPTH} times")));
                }
                open.push(match event {
                    Event::SequenceStart(..) => Open::List(line, Vec::new()),
                    _ => Open::Map(line, Vec::new(), None),
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(line, nodes)) => Node { line, what: YamlContent::List(nodes) },
                Some(Open::Map(line, fields, _)) => Node { line, what: YamlContent::Map(fields) },
                None => continue,
            },
            Event::Alias(_) => return Err((line, "an alias is not supported: write the value out".into())),
            _ => continue,
        };
        match open.last_mut() {
            None => documents.push(whole),
            Some(Open::List(_, nodes)) => nodes.push(whole),
            Some(Open::Map(_, fields, key)) => match key.take() {
                Some(key) => fields.push((key, whole)),
                None => match whole.what {
                    YamlContent::Text(text) => *key = Some(text),
                    _ => return Err((whole.line, "a key must be text".into())),
                },
            },
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_tree_with_lines() {
        let text = "groups:\n- name: a\n  rules:\n  - alert: B\n    expr: |\n      x > 1\n    for: 5m\n---\nplain\n";
        let all = documents(text).expect("YAML");
        let rule = &all[0].get("groups").expect("groups").list()[0].get("rules").expect("rules").list()[0];
        assert_eq!((rule.line, rule.get("expr").and_then(Node::text)), (4, Some("x > 1\n")));
        assert_eq!((rule.get("for").map(|node| node.line), all[1].text()), (Some(7), Some("plain")));
    }

    #[test]
    fn what_could_grow_or_is_no_yaml_is_refused() {
        let wrong = |text: &str| documents(text).map(|_| ()).unwrap_err();
        assert!(wrong("a: &x [1]\nb: *x\n").1.contains("alias"));
        assert!(wrong(&"[".repeat(99)).1.contains("nested more than 16"));
        assert!(wrong("a: [1\nb: 2").1.contains("not valid YAML"));
        assert!(wrong("? [a]\n: b\n").1.contains("a key must be text"));
    }
}
