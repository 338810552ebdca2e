//! A subset of PromQL that covers most rules about machines. Other syntax is refused by name.

use shared::unit::size;
use std::fmt;

/// Maximum nesting depth of an expression.
const MAX_DEPTH: usize = 32;

/// Maximum length of an expression, bytes.
const MAX_BYTES: usize = 16 << 10;

/// Maximum number of operators of an expression. Each makes the tree deeper by one, so this bounds the stack.
const MAX_OPERATORS: usize = 256;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(f64),
    Selector(Selector),
    Call(String, Vec<Expr>),
    /// Function, the labels behind `by`, and the operand.
    Group(String, Vec<String>, Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
}

/// A series, and the seconds of its range if it has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selector {
    pub name: String,
    pub labels: Vec<(String, &'static str, String)>,
    pub range: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    Unless,
    And,
    Compare(&'static str),
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
}

impl Op {
    /// Operator precedence.
    fn strength(self) -> u8 {
        match self {
            Op::Or => 1,
            Op::And | Op::Unless => 2,
            Op::Compare(_) => 3,
            Op::Plus | Op::Minus => 4,
            Op::Times | Op::Over | Op::Modulo => 5,
            Op::Power => 6,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Op::Or => "or",
            Op::Unless => "unless",
            Op::And => "and",
            Op::Compare(sign) => sign,
            Op::Plus => "+",
            Op::Minus => "-",
            Op::Times => "*",
            Op::Over => "/",
            Op::Modulo => "%",
            Op::Power => "^",
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Number(f64),
    Duration(f64),
    Text(String),
    Sign(&'static str),
}

/// Operators and punctuation, the longer ones first.
const SIGNS: [&str; 23] = [
    "==", "!=", "=~", "!~", ">=", "<=", ">", "<", "=", "(", ")", "{", "}", "[", "]", ",", "+", "-", "*", "/", "%", "^",
    ":",
];

const GROUPS: [&str; 12] =
    ["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "count_values", "quantile"];

/// Parses an expression.
///
/// # Errors
/// A sentence with the part that is not supported.
pub(super) fn parse(text: &str) -> Result<Expr, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("an expression has at most {}", size(MAX_BYTES as u64)));
    }
    let mut reader = Reader { tokens: tokens(text)?, at: 0, depth: 0, operators: 0 };
    let expr = reader.binary(0)?;
    match reader.peek() {
        None => Ok(expr),
        Some(token) => Err(format!("unexpected {} after the end", quote_token(token))),
    }
}

fn quote_token(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("`{word}`"),
        Token::Number(number) => format!("`{number}`"),
        Token::Duration(_) => "a duration".into(),
        Token::Text(_) => "a text in quotes".into(),
        Token::Sign(sign) => format!("`{sign}`"),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let (mut all, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix('#') {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            continue;
        }
        let Some(first) = rest.chars().next() else { return Ok(all) };
        if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c))).unwrap_or(rest.len());
            all.push(Token::Word(rest[..end].into()));
            rest = &rest[end..];
        } else if first.is_ascii_digit() || first == '.' {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
            // An exponent may have a sign.
            let signed = rest[..end].ends_with(['e', 'E']) && rest[end..].starts_with(['+', '-']);
            let end = match signed {
                true => end + 1 + rest[end + 1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - end - 1),
                false => end,
            };
            let word = &rest[..end];
            all.push(match word.parse::<f64>() {
                Ok(number) => Token::Number(number),
                Err(_) => Token::Duration(duration(word).ok_or_else(|| format!("`{word}` is not a number"))?),
            });
            rest = &rest[end..];
        } else if "\"'`".contains(first) {
            let (text, behind) = quoted(&rest[1..], first)?;
            all.push(Token::Text(text));
            rest = behind;
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            all.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if first == '@' {
            return Err("`@` fixes a time, which a rule here cannot do".into());
        } else {
            return Err(format!("unexpected {first:?}"));
        }
    }
}

fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut out = String::new();
    let mut letters = text.char_indices();
    while let Some((at, c)) = letters.next() {
        match c {
            c if c == quote => return Ok((out, &text[at + 1..])),
            '\\' if quote != '`' => match letters.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, c)) => out.push(c),
                None => break,
            },
            c => out.push(c),
        }
    }
    Err("a quoted text is not closed".into())
}

/// Seconds of a duration as `1h30m`.
pub(super) fn duration(text: &str) -> Option<f64> {
    let (mut rest, mut seconds) = (text.trim(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        seconds += number
            * match &rest[..letters] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                "w" => 7.0 * 86_400.0,
                "y" => 365.0 * 86_400.0,
                _ => return None,
            };
        rest = &rest[letters..];
    }
    Some(seconds)
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    operators: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Sign(one)) if *one == sign);
        self.at += usize::from(is);
        is
    }

    fn needs(&mut self, sign: &str) -> Result<(), String> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(format!("`{sign}` is missing before {}", self.peek().map_or("the end".into(), quote_token))),
        }
    }

    fn operator(&self) -> Option<Op> {
        Some(match self.peek()? {
            Token::Word(word) => match word.as_str() {
                "and" => Op::And,
                "or" => Op::Or,
                "unless" => Op::Unless,
                _ => return None,
            },
            Token::Sign(sign) => match *sign {
                "+" => Op::Plus,
                "-" => Op::Minus,
                "*" => Op::Times,
                "/" => Op::Over,
                "%" => Op::Modulo,
                "^" => Op::Power,
                ">" | "<" | ">=" | "<=" | "==" | "!=" => Op::Compare(sign),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Parses one nesting level deeper.
    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<Expr, String>) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} times"));
        }
        let found = read(self)?;
        self.depth -= 1;
        Ok(found)
    }

    fn binary(&mut self, least: u8) -> Result<Expr, String> {
        self.deeper(|reader| reader.operands(least))
    }

    fn operands(&mut self, least: u8) -> Result<Expr, String> {
        let mut left = self.unary()?;
        while let Some(op) = self.operator().filter(|op| op.strength() > least) {
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return Err(format!("it has more than {MAX_OPERATORS} operators"));
            }
            self.at += 1;
            self.matching()?;
            let right = self.binary(op.strength() - u8::from(op == Op::Power))?;
            left = Expr::Binary(op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// Skips `on` and `group_left`: our values of one machine and device match by themselves. Others are refused.
    fn matching(&mut self) -> Result<(), String> {
        while let Some(Token::Word(word)) = self.peek() {
            match word.as_str() {
                "bool" => return Err("`bool` turns a comparison into a number, which a rule here cannot do".into()),
                "ignoring" | "group_right" => {
                    return Err(format!("`{word}` does not name the labels to match; write `on (instance)`"));
                }
                "on" | "group_left" => {
                    self.at += 1;
                    if self.takes("(") {
                        self.names()?;
                    }
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Names with commas between, up to the closing bracket.
    fn names(&mut self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        loop {
            match self.next() {
                Some(Token::Sign(")")) => return Ok(names),
                Some(Token::Sign(",")) => {}
                Some(Token::Word(name)) => names.push(name),
                _ => return Err("labels are words with commas between, in parentheses".into()),
            }
        }
    }

    fn unary(&mut self) -> Result<Expr, String> {
        if self.takes("-") {
            let inner = self.deeper(Self::unary)?;
            return Ok(Expr::Binary(Op::Times, Box::new(Expr::Number(-1.0)), Box::new(inner)));
        }
        if self.takes("+") {
            return self.deeper(Self::unary);
        }
        let one = self.atom()?;
        match self.peek() {
            Some(Token::Word(word)) if word == "offset" => {
                Err("`offset` shifts the time, which a rule here cannot do".into())
            }
            Some(Token::Sign("[")) => {
                Err("a subquery needs a range of a computed series; write a rule over a tag".into())
            }
            _ => Ok(one),
        }
    }

    fn atom(&mut self) -> Result<Expr, String> {
        match self.next() {
            Some(Token::Sign("(")) => {
                let inner = self.binary(0)?;
                self.needs(")")?;
                Ok(inner)
            }
            Some(Token::Number(number)) => Ok(Expr::Number(number)),
            // A duration is its number of seconds.
            Some(Token::Duration(seconds)) => Ok(Expr::Number(seconds)),
            Some(Token::Sign("{")) => {
                self.at -= 1;
                self.selector(String::new())
            }
            Some(Token::Word(name)) if GROUPS.contains(&name.to_ascii_lowercase().as_str()) => {
                self.group(name.to_ascii_lowercase())
            }
            Some(Token::Word(name)) if matches!(self.peek(), Some(Token::Sign("("))) => {
                self.at += 1;
                let mut inner = Vec::new();
                while !self.takes(")") {
                    inner.push(self.binary(0)?);
                    if !self.takes(",") {
                        self.needs(")")?;
                        break;
                    }
                }
                Ok(Expr::Call(name, inner))
            }
            Some(Token::Word(name)) => self.selector(name),
            Some(other) => Err(format!("unexpected {}; a value was expected", quote_token(&other))),
            None => Err("the expression ends where a value was expected".into()),
        }
    }

    fn group(&mut self, name: String) -> Result<Expr, String> {
        let mut by = self.by(&name)?;
        self.needs("(")?;
        let inner = self.binary(0)?;
        if matches!(self.peek(), Some(Token::Sign(","))) {
            return Err(format!("`{name}` of several values is not translated"));
        }
        self.needs(")")?;
        if by.is_empty() {
            by = self.by(&name)?;
        }
        Ok(Expr::Group(name, by, Box::new(inner)))
    }

    fn by(&mut self, name: &str) -> Result<Vec<String>, String> {
        match self.peek() {
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("by") => {
                self.at += 1;
                self.needs("(")?;
                self.names()
            }
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("without") => {
                Err(format!("`{name} without` does not name the group; write `{name} by (instance)`"))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn selector(&mut self, name: String) -> Result<Expr, String> {
        let mut selector = Selector { name, ..Selector::default() };
        if self.takes("{") {
            while !self.takes("}") {
                let (Some(Token::Word(label)), Some(Token::Sign(op)), Some(Token::Text(value))) =
                    (self.next(), self.next(), self.next())
                else {
                    return Err("braces contain labels, such as instance=\"a\"".into());
                };
                if !["=", "!=", "=~", "!~"].contains(&op) {
                    return Err(format!("`{op}` does not compare labels"));
                }
                match label == "__name__" && op == "=" {
                    true => selector.name = value,
                    false => selector.labels.push((label, op, value)),
                }
                if !self.takes(",") {
                    self.needs("}")?;
                    break;
                }
            }
        }
        if self.takes("[") {
            let Some(Token::Duration(seconds)) = self.next() else {
                return Err("a range is a duration, such as [5m]".into());
            };
            if self.takes(":") {
                return Err("a subquery needs a range of a computed series; write a rule over a tag".into());
            }
            self.needs("]")?;
            selector.range = Some(seconds);
        }
        match selector.name.is_empty() {
            true => Err("series without a name are not translated".into()),
            false => Ok(Expr::Selector(selector)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bind_as_they_do_there() {
        let number = |n| Box::new(Expr::Number(n));
        let times = Expr::Binary(Op::Times, number(2.0), number(3.0));
        let sum = Expr::Binary(Op::Plus, number(1.0), Box::new(times));
        assert_eq!(parse("1 + 2 * 3 > 4"), Ok(Expr::Binary(Op::Compare(">"), Box::new(sum), number(4.0))));
        assert_eq!(parse("2 ^ 3 ^ 2"), parse("2 ^ (3 ^ 2)"));
        assert_eq!(parse("8 - 2 - 1"), parse("(8 - 2) - 1"));
        assert_eq!(parse("-1 # what is behind\n"), parse("-(1)"));
        assert_eq!(parse("1e+3"), Ok(Expr::Number(1_000.0)));
    }

    #[test]
    fn selectors_functions_and_groups_are_read() {
        let text = "avg by (instance, job) (rate(node_cpu_seconds_total{mode=\"idle\",cpu!~'0|1',}[1h30m]))";
        let Ok(Expr::Group(name, by, inner)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!((name.as_str(), by.join(" ").as_str()), ("avg", "instance job"));
        let Expr::Call(name, inner) = *inner else { panic!("no call") };
        let [Expr::Selector(selector)] = inner.as_slice() else { panic!("no selector") };
        assert_eq!((name.as_str(), selector.range, selector.labels[1].1), ("rate", Some(5_400.0), "!~"));
        assert_eq!(parse("sum(x) by (gpu)"), parse("sum by (gpu) (x)"));
        assert_eq!(parse("a / on (instance) group_left(nodename) b"), parse("a / b"));
        assert_eq!(parse("{__name__=\"up\"} == 0"), parse("up == 0"));
    }

    #[test]
    fn what_is_not_translated_is_named() {
        for (text, why) in [
            ("rate(x[5m] offset 1h)", "`offset`"),
            ("max_over_time(rate(x[5m])[1h:1m])", "subquery"),
            ("x @ 5", "`@`"),
            ("x > bool 1", "`bool`"),
            ("sum without (cpu) (x)", "`sum without`"),
            ("topk(3, x)", "several values"),
            ("x{a=~1}", "labels"),
            ("(x", "missing before the end"),
            ("x y", "unexpected `y`"),
            ("", "the expression ends"),
            ("\"a", "is not closed"),
        ] {
            let said = parse(text).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
        assert!(parse(&"(".repeat(99)).is_err_and(|why| why.contains("nested")));
    }

    #[test]
    fn a_long_expression_is_refused_soon_and_without_a_deep_stack() {
        let deep = ["-", "+", "(", "-(", "sum(", "abs(", "2^", "- + ", "1 - (", "sum by (a) ("];
        for (one, count) in deep.iter().flat_map(|one| [33, 500, 20_000, 1_000_000].map(|count| (one, count))) {
            let said = parse(&format!("{}1", one.repeat(count))).expect_err(one);
            let expected = ["nested more than 32", "more than 256 operators", "at most 16 KiB"];
            assert!(expected.iter().any(|part| said.contains(part)), "{one} x {count}: {said}");
        }
        for op in ["+", "-", "*", " and ", " or ", ">"] {
            assert!(parse(&format!("1{}", format!("{op}1").repeat(200))).is_ok(), "{op}");
            let said = parse(&format!("1{}", format!("{op}1").repeat(2_000))).expect_err(op);
            assert!(said.contains("operators"), "{op}: {said}");
        }
        for wide in [format!("sum by ({}) (x)", "a,".repeat(4_000)), format!("f({})", "1,".repeat(4_000))] {
            assert!(parse(&wide).is_ok());
        }
        assert!(parse(&format!("a{{{}}}", "b='c',".repeat(4_000))).is_err_and(|why| why.contains("16 KiB")));
    }
}
