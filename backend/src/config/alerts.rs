//! `[[rules]]`, `[rules_builtin]`, `[alerts]` and `[smtp]`: what is watched, and how notices leave. Secrets stand in files of
//! their own: no error and no print-out repeats one.

use super::file_error::{FileError, deserialized};
use super::nearest::nearest;
use super::option::{Field, OptionKind};
use super::proxy::ProxyUrl;
use super::secret::hidden;
use super::written::Takes;
use notify::address::Allowed;
use notify::{Smtp, SmtpTls};
use serde::Deserialize;
use settings::FileTable;
use shared::alert::{AlertSeverity, Origin, Rule};
use shared::crc32c::crc32c;
use shared::secret::Secret;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::de::DeValue;
use toml::{Spanned, Table, Value};

/// Rules in one file.
const RULES: usize = 500;

/// Notices of a channel in 10 min, from which on they come as one: unless it is written, and what it may be.
const STORM: (u32, u32) = (20, 1_000);

/// The longest password of a mail server, bytes.
const MAX_PASSWORD: u64 = 4 << 10;

/// Rules of the file, each a `[[rules]]`, as [`Rule`] is written.
pub struct FileRules<C: 'static> {
    /// Where they are kept.
    pub field: Field<C, Vec<Rule>>,
}

impl<C> OptionKind<C> for FileRules<C> {
    fn takes(&self) -> Takes {
        Takes::Many
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("name", "What the rule is called; each has its own name"),
            ("severity", "`info`, `warning` or `critical`; `warning` unless it is written"),
            ("when", "When it fires, like `gpu.*.temp > 85 C for 2m, until < 82 C`"),
            (
                "on",
                "Of which machines and runs, like `{ source = \"node-*\", project = \"llm\" }`; all unless it is written",
            ),
            ("to", "Names of channels; those that are their team's default unless it is written"),
            ("title", "What the notice is headed by, with placeholders such as `{source}`"),
            ("note", "What to do about it, with placeholders"),
            ("link", "An https address that helps"),
            ("repeat", "After how long it is told again while it fires; 4h unless it is written"),
            ("resolved", "Whether its end is told, too; true unless it is written"),
            ("quiet", "Whether it waits in quiet hours of a channel; true unless it is written"),
            ("enabled", "Whether it watches; true unless it is written"),
        ]
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Err("this key belongs in the configuration file".into())
    }

    fn set(&self, _: &mut C, _: &[String]) -> Result<(), String> {
        OptionKind::<C>::check(self, "")
    }

    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let place = value.span().start;
        let all: Vec<Rule> = deserialized(value)?;
        *(self.field.at)(at) = file_rules(all).map_err(|message| FileError { at: place, message })?;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let rules = (self.field.get)(of);
        (!rules.is_empty()).then(|| Value::Array(rules.iter().map(print).collect()))
    }
}

/// Rules as they were written in a file, checked, with the ids that they have by their names.
///
/// # Errors
/// Which one is wrong, and what to write instead.
fn file_rules(all: Vec<Rule>) -> Result<Vec<Rule>, String> {
    if all.len() > RULES {
        return Err(format!("rules: the file has {} rules; write at most {RULES}", all.len()));
    }
    let catalog = collectors::catalog();
    let mut checked: Vec<Rule> = Vec::with_capacity(all.len());
    for rule in all {
        shared::rule::check(&rule, &catalog).map_err(|why| format!("rules {:?}: {why}", rule.name))?;
        if checked.iter().any(|known| known.name == rule.name) {
            return Err(format!("rules: two rules have the name {:?}; give each its own name", rule.name));
        }
        checked.push(Rule { id: id(&rule.name), origin: Origin::File, by: String::new(), version: 0, ..rule });
    }
    Ok(checked)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    #[serde(default)]
    rules: Vec<Rule>,
}

/// The rules of a file that has nothing else in it, checked.
///
/// # Errors
/// In a sentence: it cannot be read, or which rule is wrong.
pub fn rules_of_file(path: &Path) -> Result<Vec<Rule>, String> {
    let failed = |why: String| format!("{}: {why}", path.display());
    let text = super::read_file(path).map_err(|error| failed(error.to_string()))?;
    let file: RulesFile = toml::from_str(&text).map_err(|error| failed(error.to_string()))?;
    if file.rules.is_empty() {
        return Err(failed("the file has no [[rules]]".into()));
    }
    file_rules(file.rules).map_err(failed)
}

/// The id of a rule of a file, which it keeps as long as it is called so.
fn id(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let plain: String = name.chars().map(letter).take(40).collect();
    format!("file-{plain}-{:08x}", crc32c(name.as_bytes()))
}

/// A rule as it stands in a file.
fn print(rule: &Rule) -> Value {
    let mut table = Table::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            table.insert(key.into(), value);
        }
    };
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    put("name", Some(rule.name.as_str().into()));
    put("severity", (rule.severity != AlertSeverity::default()).then(|| rule.severity.word().into()));
    put("when", Some(rule.when.as_str().into()));
    let on = rule.on.iter().map(|(key, pattern)| (key.clone(), pattern.as_str().into())).collect::<Table>();
    put("on", (!on.is_empty()).then_some(Value::Table(on)));
    put("to", rule.to.clone().map(Value::from));
    put("title", text(&rule.title));
    put("note", text(&rule.note));
    put("link", text(&rule.link));
    put("repeat", text(&rule.repeat));
    for (key, is) in [("resolved", rule.resolved), ("quiet", rule.quiet), ("enabled", rule.enabled)] {
        put(key, (!is).then_some(false.into()));
    }
    Value::Table(table)
}

/// `[rules_builtin]`: which of the rules that come along watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, bool>")]
pub struct BuiltInRules(pub BTreeMap<String, bool>);

impl TryFrom<BTreeMap<String, bool>> for BuiltInRules {
    type Error = String;

    fn try_from(all: BTreeMap<String, bool>) -> Result<Self, String> {
        match all.keys().find(|key| !rules::builtin::is_known(key)) {
            None => Ok(BuiltInRules(all)),
            Some(other) => {
                let known: Vec<&str> = rules::builtin::TABLE.iter().map(|row| row.id).collect();
                Err(format!("rules_builtin: there is no built-in rule `{other}`{}", nearest(other, &known)))
            }
        }
    }
}

impl BuiltInRules {
    /// All rules that come along, each with whether it watches.
    pub fn rules(&self) -> Vec<Rule> {
        rules::builtin::rules(&self.0)
    }
}

impl FileTable for BuiltInRules {
    const KEYS: &'static [(&'static str, &'static str)] =
        &[("NAME", "Whether the rule of this name watches, as `idle = false`; true unless it is written")];

    fn print(&self) -> Table {
        self.0.iter().map(|(name, on)| (name.clone(), Value::from(*on))).collect()
    }
}

/// `[alerts]`: where notices may go, and how many.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawAlerts")]
pub struct AlertSettings {
    /// Hosts with their ports, and ranges of addresses, that may be asked though they are not public.
    pub allow_targets: Vec<String>,
    /// The proxy by which notices leave; user and password may stand in it.
    pub proxy: Option<Secret>,
    /// Notices of a channel in 10 min, from which on they come as one.
    pub storm: u32,
}

impl Default for AlertSettings {
    fn default() -> Self {
        AlertSettings { allow_targets: Vec::new(), proxy: None, storm: STORM.0 }
    }
}

impl AlertSettings {
    /// Where notices may go besides public addresses.
    pub fn allowed(&self) -> Allowed {
        Allowed::parse(&self.allow_targets).expect("they were checked when they were read")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAlerts {
    #[serde(default)]
    allow_targets: Vec<String>,
    proxy: Option<String>,
    storm: Option<u32>,
}

impl TryFrom<RawAlerts> for AlertSettings {
    type Error = String;

    fn try_from(raw: RawAlerts) -> Result<Self, String> {
        Allowed::parse(&raw.allow_targets).map_err(|why| format!("alerts.{why}"))?;
        if let Some(proxy) = &raw.proxy {
            ProxyUrl::parse(proxy).map_err(|why| format!("alerts.proxy: {why}"))?;
        }
        let storm = raw.storm.unwrap_or(STORM.0);
        if !(1..=STORM.1).contains(&storm) {
            return Err(format!("alerts.storm: write 1 to {}", STORM.1));
        }
        Ok(AlertSettings { allow_targets: raw.allow_targets, proxy: raw.proxy.map(Secret::new), storm })
    }
}

impl FileTable for AlertSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        (
            "allow_targets",
            "Hosts with their ports and ranges of addresses that notices may go to though they are not public, like \
             `[\"mattermost.lab:443\", \"10.1.2.0/24\"]`",
        ),
        ("proxy", "The proxy by which notices leave, http or https; no variable of the environment is read for it"),
        ("storm", "Notices of a channel in 10 min, from which on they come as one; 20 unless it is written"),
    ];

    fn print(&self) -> Table {
        let targets = (!self.allow_targets.is_empty()).then(|| ("allow_targets", self.allow_targets.clone().into()));
        let proxy = self.proxy.as_ref().map(|proxy| ("proxy", hidden(proxy.reveal()).into()));
        let storm = (self.storm != STORM.0).then(|| ("storm", i64::from(self.storm).into()));
        let all = targets.into_iter().chain(proxy).chain(storm);
        all.map(|(key, value): (&str, Value)| (key.to_string(), value)).collect()
    }
}

/// `[smtp]`: the server of e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "RawSmtp")]
pub struct SmtpSettings {
    /// Its name or address; none: there is no e-mail.
    pub host: Option<String>,
    /// Its port; none: the usual one.
    pub port: Option<u16>,
    /// How the connection is protected.
    pub tls: SmtpTls,
    /// Who we are there.
    pub user: Option<String>,
    /// The file with the password.
    pub password_file: Option<PathBuf>,
    /// From whom messages are.
    pub from: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSmtp {
    host: String,
    port: Option<u16>,
    tls: Option<String>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    from: String,
}

/// How a connection is protected, as it is written.
const TLS: [(&str, SmtpTls); 3] =
    [("starttls", SmtpTls::StartTls), ("implicit", SmtpTls::Implicit), ("none", SmtpTls::None)];

impl TryFrom<RawSmtp> for SmtpSettings {
    type Error = String;

    fn try_from(raw: RawSmtp) -> Result<Self, String> {
        let tls = match raw.tls.as_deref() {
            None => SmtpTls::default(),
            Some(word) => {
                let known = TLS.iter().find(|(known, _)| *known == word);
                known.ok_or("smtp.tls: write starttls, implicit or none")?.1
            }
        };
        let settings = SmtpSettings {
            host: Some(raw.host),
            port: raw.port,
            tls,
            user: raw.user,
            password_file: raw.password_file,
            from: raw.from,
        };
        // What stands in the file of the password is read when it is needed.
        let password = settings.password_file.as_ref().map(|_| Secret::new("unread"));
        settings.server(password)?;
        Ok(settings)
    }
}

impl SmtpSettings {
    fn server(&self, password: Option<Secret>) -> Result<Option<Smtp>, String> {
        let Some(host) = &self.host else { return Ok(None) };
        Smtp::new(host, self.port, self.tls, self.user.as_deref(), password, &self.from).map(Some)
    }

    /// The server, with the password of its file; none where none is named.
    ///
    /// # Errors
    /// A sentence: the file cannot be read.
    pub fn open(&self) -> Result<Option<Smtp>, String> {
        self.server(self.password_file.as_deref().map(password).transpose()?)
    }
}

/// The first line of a file.
fn password(path: &Path) -> Result<Secret, String> {
    let failed = |why: String| format!("smtp.password_file: {} cannot be read: {why}", path.display());
    let mut text = String::new();
    let file = system::file::open(path).map_err(|error| failed(error.to_string()))?;
    file.take(MAX_PASSWORD).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(failed("the file is empty".into())),
        line if line.contains('\n') => Err(failed("the file has more than one line".into())),
        line => Ok(Secret::new(line)),
    }
}

impl FileTable for SmtpSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("host", "The server of e-mail, by name or address"),
        ("port", "Its port; 587 unless it is written, 465 with `tls = \"implicit\"`, 25 with `tls = \"none\"`"),
        ("tls", "`starttls`, `implicit`, or `none` for a server on this machine; `starttls` unless it is written"),
        ("user", "Who we are there"),
        ("password_file", "A file that holds the password, and nothing else"),
        ("from", "From whom messages are, like `Watchglass <watchglass@example.org>`"),
    ];

    fn print(&self) -> Table {
        let Some(host) = &self.host else { return Table::new() };
        let word = TLS.iter().find(|(_, tls)| *tls == self.tls).map(|(word, _)| *word).unwrap_or_default();
        let file = self.password_file.as_ref().map(|file| file.display().to_string());
        let all: [(&str, Option<Value>); 6] = [
            ("host", Some(host.as_str().into())),
            ("port", self.port.map(|port| i64::from(port).into())),
            ("tls", (self.tls != SmtpTls::default()).then(|| word.into())),
            ("user", self.user.as_deref().map(Value::from)),
            ("password_file", file.map(Value::from)),
            ("from", Some(self.from.as_str().into())),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::option::field;

    const KIND: FileRules<Config> = FileRules { field: field!(Config, rules) };

    fn rules(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        let file = toml::de::DeTable::parse(text).map_err(|error| error.to_string())?.into_inner();
        let (_, value) = file.into_iter().next().ok_or("no rules")?;
        KIND.read(&mut config, value).map_err(|error| error.message)?;
        Ok(config)
    }

    #[test]
    fn rules_are_read_and_printed_and_keep_their_ids() {
        let text = "[[rules]]\nname = \"Hot: GPU\"\nseverity = \"critical\"\nwhen = \"gpu.*.temp > 85 C for 2m\"\n\
                    on = { source = \"node-*\" }\nto = [\"lab\"]\nresolved = false\n\
                    [[rules]]\nname = \"Full\"\nwhen = \"source lost for 2m\"\n";
        let config = rules(text).expect("rules");
        let [hot, full] = &config.rules[..] else { panic!("two rules") };
        assert_eq!((hot.origin, hot.resolved, full.resolved), (Origin::File, false, true));
        assert!(hot.id.starts_with("file-hot--gpu-") && hot.id.len() <= 64 && hot.id != full.id, "{}", hot.id);
        let printed = toml::Table::from_iter([("rules".to_string(), KIND.show(&config).expect("two"))]).to_string();
        assert_eq!(rules(&printed).expect(&printed).rules, config.rules);
        assert_eq!(KIND.show(&Config::default()), None);
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_name() {
        let one = |body: &str| rules(&format!("[[rules]]\nname = \"Hot\"\n{body}")).expect_err(body);
        assert!(one("when = \"gpu.*.temp over 85\"").starts_with("rules \"Hot\": when: "));
        assert!(one("when = \"source lost for 1m\"\ntitle = \"{sauce}\"").contains("title"));
        assert!(one("when = \"source lost for 1m\"\nwhence = 1").contains("did you mean when?"));
        let twice = "[[rules]]\nname = \"a\"\nwhen = \"source lost for 1m\"\n".repeat(2);
        assert!(rules(&twice).expect_err("twice").contains("two are called \"a\""));
    }

    #[test]
    fn rules_that_come_along_are_switched_by_their_names() {
        let read = |text: &str| toml::from_str::<BuiltInRules>(text);
        let off = read("hub_behind = false").expect("a table");
        let on = |switches: &BuiltInRules| {
            let rules = switches.rules();
            rules.iter().find(|rule| rule.id == "hub-behind").map(|rule| rule.enabled)
        };
        assert_eq!((on(&off), on(&BuiltInRules::default())), (Some(false), Some(true)));
        assert_eq!(read(&off.print().to_string()).expect("a table"), off);
        let error = read("hub_behidn = false").expect_err("none").to_string();
        assert!(error.contains("did you mean hub-behind?"), "{error}");
    }

    #[test]
    fn what_is_written_of_alerts_is_read_again_and_its_secrets_are_hidden() {
        let read = |text: &str| toml::from_str::<AlertSettings>(text);
        assert_eq!(read("").expect("nothing"), AlertSettings::default());
        let own = read("allow_targets = [\"mattermost.lab:443\", \"10.1.2.0/24\"]\nstorm = 5").expect("a table");
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        let proxied = read("proxy = \"http://me:s3cret@proxy.lab:3128\"").expect("a table");
        let printed = proxied.print().to_string();
        assert!(printed.contains("proxy.lab:3128") && !printed.contains("s3cret"), "{printed}");
        assert!(!format!("{proxied:?}").contains("s3cret"));
        for (text, part) in [
            ("allow_targets = [\"mattermost.lab\"]", "alerts.allow_targets"),
            ("proxy = \"ftp://s3cret\"", "alerts.proxy"),
            ("storm = 0", "1 to 1000"),
            ("strom = 3", "unknown field"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_mail_server_is_read_with_the_password_of_its_file() {
        let read = |text: &str| toml::from_str::<SmtpSettings>(text);
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("password");
        std::fs::write(&file, "s3cret\n").expect("written");
        let text = format!(
            "host = \"mail.example.org\"\nuser = \"me\"\npassword_file = {:?}\nfrom = \"me@example.org\"",
            file.display().to_string()
        );
        let own = read(&text).expect("a table");
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        let shown = format!("{:?}", own.open().expect("opened").expect("a server"));
        assert!(!shown.contains("s3cret"), "{shown}");
        std::fs::remove_file(&file).expect("removed");
        assert!(own.open().expect_err("gone").starts_with("smtp.password_file: "));
        assert!(SmtpSettings::default().open().expect("none").is_none());
        for (text, part) in [
            ("host = \"mail\"", "missing field"),
            ("host = \"mail\"\nfrom = \"me\"", "from"),
            ("host = \"mail\"\nfrom = \"me@example.org\"\ntls = \"none\"", "this machine"),
            ("host = \"mail\"\nfrom = \"me@example.org\"\ntls = \"ssl\"", "starttls, implicit or none"),
            ("host = \"mail\"\nfrom = \"me@example.org\"\nuser = \"me\"", "password_file"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
