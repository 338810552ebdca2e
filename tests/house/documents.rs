//! Rules for README and docs/: short sentences, plain beginnings, American spelling, valid links. Pages below
//! docs/reference are generated from texts of the program, and the changelog names earlier versions; neither is checked
//! here.

use super::source::Source;

/// Maximum number of lines of README. It is an entry point, and the book has the details.
const MAX_README_LINES: usize = 200;
/// Maximum number of words in a sentence.
const MAX_WORDS: usize = 30;
/// Maximum mean number of words in a sentence, over all pages.
const MAX_MEAN_WORDS: f64 = 18.0;

/// Prefixes of British spellings, and their American forms.
const SPELLINGS: [(&str, &str); 20] = [
    ("utilis", "utiliz"),
    ("colour", "color"),
    ("behaviour", "behavior"),
    ("labell", "label"),
    ("normalis", "normaliz"),
    ("optimis", "optimiz"),
    ("organis", "organiz"),
    ("recognis", "recogniz"),
    ("serialis", "serializ"),
    ("summaris", "summariz"),
    ("synchronis", "synchroniz"),
    ("initialis", "initializ"),
    ("authoris", "authoriz"),
    ("licence", "license"),
    ("centre", "center"),
    ("favour", "favor"),
    ("neighbour", "neighbor"),
    ("cancell", "cancel"),
    ("catalogue", "catalog"),
    ("grey", "gray"),
];

/// Words whose American form matches one of [`SPELLINGS`].
const KEPT_WORDS: [&str; 2] = ["cancellation", "cancellations"];

/// Names in code that come from others, or that an older version stored.
const OTHERS_NAMES: [&str; 4] = ["ipu utilisation", "alias = \"gpu_utilisation", "labelledby", "\"licence\""];

/// Words without information, and their replacements.
const REFUSED: [(&str, &str); 6] = [
    ("simply", "leave it out"),
    ("obviously", "leave it out"),
    ("just", "leave it out"),
    ("etc", "name the things"),
    ("e.g", "for example"),
    ("i.e", "that is"),
];

/// Words that begin a clause that is the subject of its sentence.
const CLAUSES: [&str; 6] = ["Who", "Whoever", "What", "Whatever", "Of", "Told"];

fn is_prose(path: &str) -> bool {
    let written =
        path == "README.md" || path == "CONTRIBUTING.md" || path == "SECURITY.md" || path.starts_with("docs/");
    written && path.ends_with(".md") && !path.starts_with("docs/reference/") && path != "docs/SUMMARY.md"
}

fn prose(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| is_prose(&source.path))
}

/// The sentences of a document: of its paragraphs, items and cells. Code and headings are excluded. A link counts as
/// its text.
pub fn sentences(text: &str) -> Vec<String> {
    let (mut all, mut open, mut fenced) = (Vec::new(), String::new(), false);
    for line in text.lines().chain([""]) {
        let line = line.trim();
        let fence = line.starts_with("```");
        fenced ^= fence;
        let is_text = !fence && !fenced && !line.starts_with('#') && !line.starts_with('<') && !line.starts_with("[//");
        let begins =
            line.starts_with("- ") || line.starts_with("* ") || line.starts_with('|') || line.starts_with("> ");
        let numbered = line.split_once(". ").is_some_and(|(n, _)| n.len() < 3 && n.bytes().all(|b| b.is_ascii_digit()));
        if !is_text || line.is_empty() || begins || numbered {
            split(&std::mem::take(&mut open), &mut all);
        }
        if !is_text || line.starts_with("| -") || line.starts_with("|-") {
            continue;
        }
        let line = if numbered { line.split_once(". ").map_or(line, |(_, rest)| rest) } else { line };
        match line.starts_with('|') {
            true => line.split('|').for_each(|cell| split(cell.trim(), &mut all)),
            false => {
                open.push(' ');
                open.push_str(line.trim_start_matches(['-', '*', '>', ' ']));
            }
        }
    }
    all
}

/// Adds the sentences of a text without lines. Code in it and the addresses of links count as one word.
fn split(text: &str, all: &mut Vec<String>) {
    let mut plain = String::new();
    for (at, part) in text.split('`').enumerate() {
        plain.push_str(if at % 2 == 0 { part } else { "code" });
    }
    while let Some(at) = plain.find("](") {
        let end = plain[at..].find(')').map_or(plain.len(), |end| at + end + 1);
        plain.replace_range(at..end, "");
    }
    let plain = plain.replace(['[', '*'], "");
    let mut from = 0;
    for (at, _) in plain.match_indices(['.', '?', '!', ';']) {
        let ends = plain[at + 1..].starts_with(' ') || at + 1 == plain.len();
        if ends {
            all.push(plain[from..=at].trim().to_owned());
            from = at + 1;
        }
    }
    all.push(plain[from..].trim().to_owned());
    all.retain(|sentence| !sentence.is_empty());
}

fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// Each figure of README is that of the cost table.
pub fn figures(sources: &[Source]) -> Vec<String> {
    let rows = |path: &str| -> Vec<String> {
        let page = sources.iter().find(|source| source.path == path);
        let lines = page.into_iter().flat_map(|source| source.text.lines()).map(|line| line.replace(" †", ""));
        lines.skip_while(|line| line != "| figure | here | peers |").take_while(|line| line.starts_with('|')).collect()
    };
    let known = rows("docs/cost.md");
    let others = rows("README.md").into_iter().filter(|row| !known.contains(row));
    others.map(|row| format!("README.md: docs/cost.md has no such row: {row}")).collect()
}

/// README has at most this many lines.
pub fn front_door(sources: &[Source]) -> Vec<String> {
    let lines = |source: &&Source| source.path == "README.md" && source.text.lines().count() > MAX_README_LINES;
    let fault =
        |source: &Source| format!("{}: more than {MAX_README_LINES} lines; move some of it into docs/", source.path);
    sources.iter().filter(lines).map(fault).collect()
}

/// No sentence has too many words.
pub fn long_sentences(sources: &[Source]) -> Vec<String> {
    let of = |source: &Source| {
        let long = |sentence: &String| words(sentence) > MAX_WORDS;
        sentences(&source.text)
            .into_iter()
            .filter(long)
            .map(|s| format!("{}: {} words: {s}", source.path, words(&s)))
            .collect()
    };
    prose(sources).flat_map(|source| -> Vec<String> { of(source) }).collect()
}

/// The mean number of words in a sentence is low. Sentences of one or two words, such as cells, do not count.
pub fn mean(sources: &[Source]) -> Vec<String> {
    let counts: Vec<usize> =
        prose(sources).flat_map(|source| sentences(&source.text)).map(|s| words(&s)).filter(|&n| n > 2).collect();
    let mean = counts.iter().sum::<usize>() as f64 / counts.len().max(1) as f64;
    if mean > MAX_MEAN_WORDS {
        vec![format!("{mean:.1} words in a sentence on average, at most {MAX_MEAN_WORDS}")]
    } else {
        Vec::new()
    }
}

/// No clause is the subject of a sentence; questions may begin so.
pub fn clauses(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in prose(sources) {
        for sentence in sentences(&source.text).into_iter().filter(|s| !s.ends_with('?') && words(s) > 4) {
            if sentence.split(' ').next().is_some_and(|first| CLAUSES.contains(&first)) {
                faults.push(format!("{}: begin with who does it: {sentence}", source.path));
            }
        }
    }
    faults
}

/// No clause is the subject of a sentence in a comment of the code either; questions may begin so.
pub fn clauses_of_comments(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let is_comment = |source: &&Source| source.path.ends_with(".rs");
    for source in sources.iter().filter(is_comment) {
        let mut block = String::new();
        for line in source.text.lines().chain([""]) {
            let line = line.trim_start();
            let comment = ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark));
            match comment.map(str::trim) {
                Some(text) if !text.is_empty() => block.push_str(&format!("{text} ")),
                _ => {
                    let mut all = Vec::new();
                    split(&std::mem::take(&mut block), &mut all);
                    let clause = |s: &String| s.split(' ').next().is_some_and(|first| CLAUSES.contains(&first));
                    for sentence in all.iter().filter(|s| !s.ends_with('?') && words(s) > 2 && clause(s)) {
                        faults.push(format!("{}: begin with who does it: {sentence}", source.path));
                    }
                }
            }
        }
    }
    faults
}

/// One spelling, and no words without information.
pub fn spelling(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in prose(sources) {
        for sentence in sentences(&source.text) {
            let lower = sentence.to_lowercase();
            for word in lower.split(|c: char| !c.is_alphanumeric() && c != '.').map(|word| word.trim_end_matches('.')) {
                let british =
                    SPELLINGS.iter().find(|(begin, _)| word.starts_with(begin) && !KEPT_WORDS.contains(&word));
                let refused = REFUSED.iter().find(|(refused, _)| *refused == word);
                if let Some((is, should)) = british.or(refused) {
                    faults.push(format!("{}: {is}: {should}: {sentence}", source.path));
                }
            }
        }
    }
    faults
}

/// Code, its strings and its comments use the spelling of the documents. Names from others are excluded.
pub fn spelling_of_code(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let is_code = |path: &str| [".rs", ".css", ".py", ".ts", ".html"].iter().any(|end| path.ends_with(end));
    let is_judged = |path: &str| is_code(path) && !path.starts_with("tests/house") && !path.contains("/fixtures/");
    for source in sources.iter().filter(|source| is_judged(&source.path)) {
        for (at, line) in source.text.lines().enumerate() {
            let lower = OTHERS_NAMES.iter().fold(line.to_lowercase(), |line, name| line.replace(name, ""));
            let british = SPELLINGS.iter().filter(|(is, _)| *is != "cancell").find(|(is, _)| lower.contains(is));
            if let Some((is, should)) = british {
                faults.push(format!("{}:{}: {is}: {should}", source.path, at + 1));
            }
        }
    }
    faults
}

/// Links to a heading are valid.
pub fn anchors(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in source.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((file, anchor)) = target.split_once('#').filter(|_| !target.contains(':')) else { continue };
            let path = if file.is_empty() { source.path.clone() } else { super::rules::resolved(folder, file) };
            let Some(page) = sources.iter().find(|s| s.path == path && path.ends_with(".md")) else { continue };
            if !slugs(&page.text).any(|slug| slug == anchor) {
                faults.push(format!("{}: {target}: no such heading", source.path));
            }
        }
    }
    faults
}

/// Links of the program into the book find their page and heading.
pub fn linked_from_code(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    let is_shown =
        |path: &str| path.ends_with(".rs") && (path.starts_with("frontend/src") || path.starts_with("backend/"));
    for source in sources.iter().filter(|source| is_shown(&source.path)) {
        for after in source.text.split("docs/").skip(1) {
            let Some((page, rest)) = after.split_once(".html") else { continue };
            if page.is_empty() || !page.chars().all(|c| c.is_ascii_lowercase() || "-/".contains(c)) {
                continue;
            }
            let path = format!("docs/{page}.md");
            let anchor = rest.strip_prefix('#').map(|rest| rest.split(['"', ' ', '\\']).next().unwrap_or(rest));
            // The heading of one that the program fills in is checked where its names are.
            let anchor = anchor.filter(|anchor| !anchor.contains('{'));
            match sources.iter().find(|source| source.path == path) {
                None => faults.push(format!("{}: {path}: no such page", source.path)),
                Some(page) if anchor.is_some_and(|anchor| !slugs(&page.text).any(|slug| slug == anchor)) => {
                    faults.push(format!("{}: {path}: no heading {}", source.path, anchor.unwrap_or_default()));
                }
                Some(_) => {}
            }
        }
    }
    faults
}

/// The anchors of a document, as forges and mdBook generate them from its headings.
fn slugs(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    let headings = text.lines().filter(move |line| {
        fenced ^= line.starts_with("```");
        !fenced && line.starts_with('#')
    });
    headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let fits = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        heading.chars().filter(fits).map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}
