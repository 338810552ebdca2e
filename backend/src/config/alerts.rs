//! `[[rules]]`, `[rules_builtin]`, `[alerts]` and `[smtp]`: alert rules, and delivery of notifications. Secrets are in
//! separate files: no error and no print-out repeats one.

use super::option::{FILE_ONLY, OptionKind};
use super::secret::hidden;
use notify::address::Allowed;
use notify::{Smtp, SmtpTls};
use settings::kinds::{Field, TableSlot, Words, any_pair, texts};
use settings::{Fault, FileError, Inner, KeyKind, KeyText, Takes, nearest, table, table_of, value};
use shared::alert::{AlertSeverity, Origin, Rule};
use shared::crc32c::crc32c;
use shared::secret::Secret;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::de::DeValue;
use toml::{Spanned, Table, Value};
use uplink::settings::ProxyUrl;

/// Maximum number of rules in one file.
const RULES: usize = 500;

/// Maximum of `alerts.storm`: notifications of a channel in 10 min before they are grouped.
const MAX_STORM: u32 = 1_000;

/// Maximum size of a mail server's password file, bytes.
const MAX_PASSWORD: u64 = 4 << 10;

const SEVERITIES: Words<AlertSeverity> =
    &[("info", AlertSeverity::Info), ("warning", AlertSeverity::Warning), ("critical", AlertSeverity::Critical)];

table! {
    /// A rule as it stands in a file.
    pub(super) RULE: FileTable<Rule> = { new_rule, any_rule } {
        /// Unique name of the rule
        name: text(value::any), required like "\"Hot GPU\"";
        /// Severity: `info`, `warning` or `critical`
        severity: word(SEVERITIES);
        /// Condition
        when: text(value::any), required like "\"gpu.*.temp > 85 C for 2m, until < 82 C\"";
        /// Machines and runs to evaluate [default: all]
        on: map(any_pair), like "{ source = \"node-*\", project = \"llm\" }";
        /// Names of channels [default: the default channels of the team]
        to: own(read_list, show_list), like "[\"ops\"]";
        /// Title of the notification, with placeholders such as `{source}` [default: the sentence of the alert]
        title: text(value::any), like "\"{source} is hot\"";
        /// Text that says what to do, with placeholders
        note: text(value::any), like "\"Look at the fans of {source}\"";
        /// https address of a runbook
        link: text(value::any), like "\"https://wiki.example.org/hot\"";
        /// Time after which the notification is repeated while it fires [default: 4h]
        repeat: text(value::any), like "\"1h\"";
        /// Notify when it resolves
        resolved: text(value::switch);
        /// Delay notifications during the quiet hours of a channel
        quiet: text(value::switch);
        /// Enable the rule
        enabled: text(value::switch);
    }
}

fn new_rule() -> Rule {
    Rule { resolved: true, quiet: true, enabled: true, ..Rule::default() }
}

/// Rules are checked together, since their names must be unique.
fn any_rule(_: &Rule) -> Result<(), Fault> {
    Ok(())
}

fn read_list(value: Value) -> Result<Option<Vec<String>>, String> {
    texts::<String>(value).map(Some)
}

fn show_list(texts: &Option<Vec<String>>) -> Option<Value> {
    texts.clone().map(Value::from)
}

/// Rules of the file, each a `[[rules]]`.
pub struct FileRules<C: 'static>(Field<C, Vec<Rule>>);

/// Adds the rules of a file.
pub const fn rule_tables<C>(field: Field<C, Vec<Rule>>) -> FileRules<C> {
    FileRules(field)
}

impl<C> KeyKind<C> for FileRules<C> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let place = value.span().start;
        let mut all = Vec::new();
        all.read_tables(&RULE, value)?;
        *(self.0.at)(at) = file_rules(all).map_err(|message| FileError::new(place, message))?;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.0.get)(of).show_tables(&RULE)
    }

    fn inner(&self) -> Option<Inner> {
        Some(Inner { is_list: true, keys: RULE.texts() })
    }
}

impl<C> OptionKind<C> for FileRules<C> {
    fn takes(&self) -> Takes {
        Takes::Many
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Err(FILE_ONLY.into())
    }

    fn set(&self, _: &mut C, _: &[String]) -> Result<(), String> {
        Err(FILE_ONLY.into())
    }
}

/// Checks the rules of a file and sets their ids, which derive from their names.
///
/// # Errors
/// The invalid rule, and the remedy.
fn file_rules(all: Vec<Rule>) -> Result<Vec<Rule>, String> {
    if all.len() > RULES {
        return Err(format!("there are {} of them; a file has at most {RULES}", all.len()));
    }
    let catalog = collectors::catalog();
    let mut checked: Vec<Rule> = Vec::with_capacity(all.len());
    for rule in all {
        shared::rule::check(&rule, &catalog).map_err(|why| format!("{:?}: {why}", rule.name))?;
        if checked.iter().any(|known| known.name == rule.name) {
            return Err(format!("two rules have the name {:?}; give each its own name", rule.name));
        }
        checked.push(Rule { id: id(&rule.name), origin: Origin::File, by: String::new(), version: 0, ..rule });
    }
    Ok(checked)
}

table! {
    /// A file of rules alone.
    #[derive(Debug)]
    struct RulesFile {
        /// The watched value
        rules: Vec<Rule> = Vec::new(), table(&RULE);
    }
}

/// The checked rules of a file that contains only rules.
///
/// # Errors
/// A sentence: the file cannot be read, or a rule is invalid.
pub fn rules_of_file(path: &Path) -> Result<Vec<Rule>, String> {
    let failed = |why: String| format!("{}: {why}", path.display());
    let text = super::read_file(path).map_err(|error| failed(error.to_string()))?;
    let in_file = |error: FileError| format!("{}, line {}: {error}", path.display(), error.line(&text));
    let file = RulesFile::TABLE.read_text(&text).map_err(in_file)?;
    if file.rules.is_empty() {
        return Err(failed("the file has no [[rules]]".into()));
    }
    file_rules(file.rules).map_err(failed)
}

/// The id of a rule of a file; it is stable as long as the rule keeps its name.
fn id(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let plain: String = name.chars().map(letter).take(40).collect();
    format!("file-{plain}-{:08x}", crc32c(name.as_bytes()))
}

/// `[rules_builtin]`: which built-in rules are enabled, by the configured names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltInRules(pub BTreeMap<String, bool>);

impl BuiltInRules {
    /// All built-in rules, each with its enabled state.
    pub fn rules(&self) -> Vec<Rule> {
        rules::builtin::rules(&self.0)
    }
}

/// The table `[rules_builtin]`, whose keys are the built-in rules.
pub struct Switches<C: 'static>(Field<C, BuiltInRules>);

/// Whether each built-in rule is enabled.
pub const fn switches<C>(field: Field<C, BuiltInRules>) -> Switches<C> {
    Switches(field)
}

impl<C> KeyKind<C> for Switches<C> {
    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let own = &mut (self.0.at)(at).0;
        own.clear();
        for (key, value) in table_of(value)?.1 {
            let place = key.span().start;
            let name = key.into_inner();
            if !rules::builtin::is_known(&name) {
                let known: Vec<&str> = rules::builtin::TABLE.iter().map(|row| row.id).collect();
                let message = format!("there is no rule `{name}` that comes along{}", nearest(&name, &known));
                return Err(FileError::new(place, message));
            }
            own.insert(name.into_owned(), settings::deserialized(value)?);
        }
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let own = &(self.0.get)(of).0;
        let table = own.iter().map(|(name, on)| (name.clone(), Value::from(*on))).collect::<Table>();
        (!own.is_empty()).then_some(Value::Table(table))
    }

    fn inner(&self) -> Option<Inner> {
        let text = |row: &rules::builtin::BuiltIn| KeyText {
            name: row.id,
            help: row.name,
            default: Some(true.into()),
            example: "",
            is_required: false,
            inner: None,
        };
        Some(Inner { is_list: false, keys: rules::builtin::TABLE.iter().map(text).collect() })
    }
}

impl<C> OptionKind<C> for Switches<C> {
    fn takes(&self) -> Takes {
        Takes::One
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Err(FILE_ONLY.into())
    }

    fn set(&self, _: &mut C, _: &[String]) -> Result<(), String> {
        Err(FILE_ONLY.into())
    }
}

table! {
    /// `[alerts]`: where notices may go, and how many.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AlertSettings {
        /// Non-public hosts with ports, and address ranges, that notifications may be sent to
        allow_targets: Vec<String> = Vec::new(), text(target), like "[\"mattermost.lab:443\", \"10.1.2.0/24\"]";
        /// Proxy for notifications; environment variables are ignored, and its user and password are never printed
        proxy: Option<Secret> = None, text_shown(proxy, show_proxy), like "\"http://proxy.example.org:3128\"";
        /// Number of notifications of a channel in 10 min from which they are grouped into one, 1 to 1000
        storm: u32 = 20, text(storm);
    }
}

fn target(text: &str) -> Result<String, String> {
    Allowed::parse(&[text]).map(|_| text.into())
}

fn proxy(text: &str) -> Result<Secret, String> {
    ProxyUrl::parse(text).map(|_| Secret::new(text))
}

fn show_proxy(proxy: &Option<Secret>) -> Option<Value> {
    proxy.as_ref().map(|proxy| hidden(proxy.reveal()).into())
}

fn storm(text: &str) -> Result<u32, String> {
    let storm = text.parse().ok().filter(|storm| (1..=MAX_STORM).contains(storm));
    storm.ok_or_else(|| format!("write 1 to {MAX_STORM}"))
}

impl AlertSettings {
    /// Permitted targets of notifications besides public addresses.
    pub fn allowed(&self) -> Allowed {
        Allowed::parse(&self.allow_targets).expect("they were checked when they were read")
    }
}

const TLS: Words<SmtpTls> =
    &[("starttls", SmtpTls::StartTls), ("implicit", SmtpTls::Implicit), ("none", SmtpTls::None)];

table! {
    /// `[smtp]`: the server of e-mail.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SmtpSettings, checked by SmtpSettings::check {
        /// Mail server, by name or address
        host: Option<String> = None, text(value::any), required like "\"mail.example.org\"";
        /// Port of the mail server [default: 587; 465 with `tls = "implicit"`, 25 with `tls = "none"`]
        port: Option<u16> = None, text(value::port), like "587";
        /// Encryption: `starttls`, `implicit`, or `none` for a server on this machine
        tls: SmtpTls = SmtpTls::StartTls, word(TLS);
        /// User name at the mail server
        user: Option<String> = None, text(value::any), like "\"watchglass\"";
        /// File with the password and nothing else
        password_file: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/smtp-password\"";
        /// Sender address of messages
        from: String = String::new(), text(value::any), required like "\"Watchglass <watchglass@example.org>\"";
    }
}

impl SmtpSettings {
    /// The content of the password file is read on use.
    fn check(&self) -> Result<(), Fault> {
        self.server(self.password_file.as_ref().map(|_| Secret::new("unread")))?;
        Ok(())
    }

    fn server(&self, password: Option<Secret>) -> Result<Option<Smtp>, String> {
        let Some(host) = &self.host else { return Ok(None) };
        Smtp::new(host, self.port, self.tls, self.user.as_deref(), password, &self.from).map(Some)
    }

    /// The server, with the password of its file; none if none is configured.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use settings::field;

    const KIND: FileRules<Config> = rule_tables(field!(Config, rules));

    fn rules(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        let file = toml::de::DeTable::parse(text).map_err(|error| error.to_string())?.into_inner();
        let (_, value) = file.into_iter().next().ok_or("no rules")?;
        KIND.read(&mut config, value).map_err(|error| error.to_string())?;
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
        assert!(one("when = \"gpu.*.temp over 85\"").starts_with("\"Hot\": when: "));
        assert!(one("when = \"source lost for 1m\"\ntitle = \"{sauce}\"").contains("title"));
        assert!(one("when = \"source lost for 1m\"\nwhence = 1").contains("did you mean when?"));
        let twice = "[[rules]]\nname = \"a\"\nwhen = \"source lost for 1m\"\n".repeat(2);
        assert!(rules(&twice).expect_err("twice").contains("two rules have the name \"a\""));
    }

    #[test]
    fn rules_that_come_along_are_switched_by_their_names() {
        const SWITCHES: Switches<Config> = switches(field!(Config, rules_builtin));
        let read = |text: &str| -> Result<BuiltInRules, FileError> {
            let mut config = Config::default();
            let text = format!("[rules_builtin]\n{text}");
            let file = toml::de::DeTable::parse(&text).expect("TOML").into_inner();
            SWITCHES.read(&mut config, file.into_iter().next().expect("a table").1).map(|()| config.rules_builtin)
        };
        let off = read("hub_behind = false").expect("a table");
        let on = |switches: &BuiltInRules| {
            let rules = switches.rules();
            rules.iter().find(|rule| rule.id == "hub-behind").map(|rule| rule.enabled)
        };
        assert_eq!((on(&off), on(&BuiltInRules::default())), (Some(false), Some(true)));
        let printed = SWITCHES.show(&Config { rules_builtin: off.clone(), ..Config::default() }).expect("one");
        let printed = printed.as_table().expect("a table").to_string();
        assert_eq!(read(&printed).expect("a table"), off);
        let error = read("hub_behidn = false").expect_err("none").to_string();
        assert!(error.contains("did you mean hub-behind?"), "{error}");
    }

    #[test]
    fn what_is_written_of_alerts_is_read_again_and_its_secrets_are_hidden() {
        let read = |text: &str| AlertSettings::TABLE.read_text(text);
        assert_eq!(read("").expect("nothing"), AlertSettings::default());
        let own = read("allow_targets = [\"mattermost.lab:443\", \"10.1.2.0/24\"]\nstorm = 5").expect("a table");
        assert_eq!(read(&AlertSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        let proxied = read("proxy = \"http://me:s3cret@proxy.lab:3128\"").expect("a table");
        let printed = AlertSettings::TABLE.print(&proxied).to_string();
        assert!(printed.contains("proxy.lab:3128") && !printed.contains("s3cret"), "{printed}");
        assert!(!format!("{proxied:?}").contains("s3cret"));
        for (text, part) in [
            ("allow_targets = [\"mattermost.lab\"]", "allow_targets: \"mattermost.lab\" is neither"),
            ("proxy = \"ftp://s3cret\"", "proxy: "),
            ("storm = 0", "1 to 1000"),
            ("strom = 3", "did you mean storm?"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_mail_server_is_read_with_the_password_of_its_file() {
        let read = |text: &str| SmtpSettings::TABLE.read_text(text);
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("password");
        std::fs::write(&file, "s3cret\n").expect("written");
        let text = format!(
            "host = \"mail.example.org\"\nuser = \"me\"\npassword_file = {:?}\nfrom = \"me@example.org\"",
            file.display().to_string()
        );
        let own = read(&text).expect("a table");
        assert_eq!(read(&SmtpSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        let shown = format!("{:?}", own.open().expect("opened").expect("a server"));
        assert!(!shown.contains("s3cret"), "{shown}");
        std::fs::remove_file(&file).expect("removed");
        assert!(own.open().expect_err("gone").starts_with("smtp.password_file: "));
        assert!(SmtpSettings::default().open().expect("none").is_none());
        for (text, part) in [
            ("host = \"mail\"", "from: it is missing; write from = "),
            ("host = \"mail\"\nfrom = \"me\"", "from"),
            ("host = \"mail\"\nfrom = \"me@example.org\"\ntls = \"none\"", "this machine"),
            ("host = \"mail\"\nfrom = \"me@example.org\"\ntls = \"ssl\"", "known are starttls, implicit, none"),
            ("host = \"mail\"\nfrom = \"me@example.org\"\nuser = \"me\"", "password_file"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
