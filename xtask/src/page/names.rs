//! Short names at the border between the page's wasm and its script. wasm-bindgen's names hold a hash each, which no
//! compression shrinks, and stand in both files.

use std::collections::HashMap;

/// The module's name in the script that wasm-bindgen writes.
const MODULE: &str = "./page_bg.js";
/// How the names begin that wasm-bindgen makes up: nothing else may be renamed.
const MADE_UP: [&str; 4] = ["__wbg_", "__wbindgen_", "__externref_", "wasm_bindgen__"];
const IMPORTS: u8 = 2;
const EXPORTS: u8 = 7;

/// The module and its script with short names for what the one takes from the other, and without what it does not take.
///
/// Errors: the two are not as wasm-bindgen writes them.
pub fn shorten(wasm: &[u8], script: &str) -> Result<(Vec<u8>, String), String> {
    let mut names = Names { short: HashMap::new(), script };
    let mut at = Reader { bytes: wasm, at: 0 };
    let mut out = at.take(8)?.to_vec();
    while at.at < wasm.len() {
        let id = at.take(1)?[0];
        let length = at.number()?;
        let body = at.take(length)?;
        let body = match id {
            IMPORTS => imports(body, &mut names)?,
            EXPORTS => exports(body, &mut names)?,
            _ => body.to_vec(),
        };
        out.push(id);
        number(&mut out, body.len());
        out.extend(body);
    }
    let quoted = format!("\"{MODULE}\":");
    if script.matches(&quoted).count() != 1 {
        return Err(format!("the page's script does not name {MODULE} once"));
    }
    let script = names.script(script).replace(&quoted, "\"_\":");
    Ok((out, script))
}

fn imports(body: &[u8], names: &mut Names<'_>) -> Result<Vec<u8>, String> {
    let mut from = Reader { bytes: body, at: 0 };
    let mut out = Vec::new();
    let count = from.number()?;
    number(&mut out, count);
    for _ in 0..count {
        let module = from.name()?;
        let name = from.name()?;
        if module != MODULE {
            return Err(format!("the page's wasm imports {name} from {module}, not from {MODULE}"));
        }
        text(&mut out, "_");
        text(&mut out, &names.short(name));
        let start = from.at;
        match from.take(1)?[0] {
            0 => drop(from.number()?),
            1 => {
                from.take(1)?;
                from.limits()?;
            }
            2 => from.limits()?,
            3 => drop(from.take(2)?),
            kind => return Err(format!("the page's wasm has an import of the unknown kind {kind}")),
        }
        out.extend(&body[start..from.at]);
    }
    Ok(out)
}

fn exports(body: &[u8], names: &mut Names<'_>) -> Result<Vec<u8>, String> {
    let mut from = Reader { bytes: body, at: 0 };
    let (mut kept, mut out) = (0, Vec::new());
    for _ in 0..from.number()? {
        let name = from.name()?;
        let kind = from.take(1)?;
        let index = from.number()?;
        // Nobody else sees the module: what the script does not name keeps dead code alive.
        if names.script.contains(name) {
            kept += 1;
            text(&mut out, &names.short(name));
            out.extend(kind);
            number(&mut out, index);
        }
    }
    let mut body = Vec::new();
    number(&mut body, kept);
    body.extend(out);
    Ok(body)
}

/// The short names given so far.
struct Names<'a> {
    short: HashMap<String, String>,
    script: &'a str,
}

impl Names<'_> {
    /// The short name of one; a name that wasm-bindgen did not make up, or that the script does not know, stays.
    fn short(&mut self, name: &str) -> String {
        if !MADE_UP.iter().any(|start| name.starts_with(start)) || !self.script.contains(name) {
            return name.to_owned();
        }
        let next = format!("_{}", self.short.len());
        self.short.entry(name.to_owned()).or_insert(next).clone()
    }

    /// The script with the short names: whole words only.
    fn script(&self, script: &str) -> String {
        let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let mut out = String::with_capacity(script.len());
        let mut rest = script;
        while let Some(start) = rest.find(part_of_word) {
            let (before, word) = rest.split_at(start);
            let (word, after) = word.split_at(word.find(|c| !part_of_word(c)).unwrap_or(word.len()));
            out.push_str(before);
            out.push_str(self.short.get(word).map_or(word, String::as_str));
            rest = after;
        }
        out + rest
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let taken = self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end));
        self.at += count;
        taken.ok_or_else(|| "the page's wasm is cut off".to_owned())
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> Result<usize, String> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("the page's wasm has a number of more than 32 bits".to_owned())
    }

    fn name(&mut self) -> Result<&'a str, String> {
        let length = self.number()?;
        std::str::from_utf8(self.take(length)?).map_err(|e| format!("a name in the page's wasm: {e}"))
    }

    /// The least and, if the flag says so, the greatest size of a table or a memory.
    fn limits(&mut self) -> Result<(), String> {
        let flags = self.take(1)?[0];
        self.number()?;
        if flags & 1 == 1 {
            self.number()?;
        }
        Ok(())
    }
}

fn number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len());
    out.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{number, shorten, text};

    /// A module that imports one function and exports two things.
    fn module(import: &str) -> Vec<u8> {
        let mut imports = vec![1];
        text(&mut imports, "./page_bg.js");
        text(&mut imports, import);
        imports.extend([0, 0]);
        let mut exports = vec![3];
        text(&mut exports, "intounderlyingsink_abort");
        exports.extend([0, 7]);
        text(&mut exports, "memory");
        exports.extend([2, 0]);
        text(&mut exports, "__wbindgen_free");
        exports.extend([0, 0x80, 0x01]);
        let mut wasm = b"\0asm\x01\0\0\0".to_vec();
        for (id, body) in [(2, imports), (7, exports), (10, vec![7; 200])] {
            wasm.push(id);
            number(&mut wasm, body.len());
            wasm.extend(body);
        }
        wasm
    }

    #[test]
    fn both_sides_get_the_same_names() {
        let script = "const i = { __wbg_now_0123456789abcdef: () => wasm.__wbindgen_free(wasm.memory) };\n\
                      const __wbg_now_0123456789abcdef2 = 1; return { \"./page_bg.js\": i };";
        let (wasm, script) = shorten(&module("__wbg_now_0123456789abcdef"), script).expect("as wasm-bindgen writes");
        assert_eq!(
            script,
            "const i = { _0: () => wasm._1(wasm.memory) };\n\
             const __wbg_now_0123456789abcdef2 = 1; return { \"_\": i };"
        );
        let has = |part: &[u8]| wasm.windows(part.len()).any(|bytes| bytes == part);
        assert!(has(b"\x01_\x02_0\0\0") && has(b"\x06memory\x02\0\x02_1\0\x80\x01") && has(&[7; 200]));
        assert!(!has(b"__wb") && !has(b"into"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let script = "\"./page_bg.js\": __wbindgen_free";
        let wasm = module("plain");
        let (whole, _) = shorten(&wasm, script).expect("both name the module");
        assert!(shorten(&wasm, "__wbindgen_free").is_err(), "the script names no module");
        let sections = (9..wasm.len()).filter(|end| shorten(&wasm[..*end], script).is_ok()).count();
        assert_eq!((sections, whole.len() < wasm.len()), (2, true), "cut off anywhere but between two sections");
    }
}
