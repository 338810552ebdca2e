//! The Helm chart: it is generated from the manifests of `deploy/kubernetes`, and with its default values it makes the
//! same objects.

use super::{at, read, yaml};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use watchglass_tests::programs;
use watchglass_tests::server::command;

const NAMESPACE: &str = "watchglass";

/// The folder of the chart.
fn chart() -> PathBuf {
    at("helm/watchglass")
}

/// A template of the chart, made of a manifest.
struct Template {
    path: &'static str,
    manifest: &'static str,
    /// Condition of the whole template; empty for none.
    condition: &'static str,
    /// Texts of the manifest, and their replacements. Each text must be there.
    values: &'static [(&'static str, &'static str)],
}

const IMAGE: (&str, &str) = (
    "image: watchglass\n",
    // Without a verb of printf: a tag of digits alone is a number in `--set image.tag=20260501`.
    "image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}\n",
);
const TLS: (&str, &str) = ("secretName: watchglass-tls\n", "secretName: {{ .Values.hub.tlsSecret }}\n");
const HUB_CPU: (&str, &str) = ("cpu: 200m\n", "cpu: {{ .Values.hub.cpu }}\n");
const HUB_MEMORY: (&str, &str) = ("memory: 2Gi\n", "memory: {{ .Values.hub.memory }}\n");

const TEMPLATES: [Template; 4] = [
    Template { path: "service.yaml", manifest: "base/service.yaml", condition: "", values: &[] },
    Template {
        path: "agent.yaml",
        manifest: "base/agent.yaml",
        condition: "",
        values: &[
            IMAGE,
            ("cpu: 20m\n", "cpu: {{ .Values.agent.cpu }}\n"),
            ("memory: 512Mi\n", "memory: {{ .Values.agent.memory }}\n"),
            ("secretName: watchglass-agent\n", "secretName: {{ .Values.agent.secret }}\n"),
            ("path: /var/lib/watchglass-agent\n", "path: {{ .Values.agent.dataDir }}\n"),
            (
                "      hostNetwork: true\n",
                "      hostNetwork: true\n      {{- with .Values.agent.runtimeClassName }}\n      runtimeClassName: {{ . }}\n      {{- end }}\n",
            ),
        ],
    },
    Template {
        path: "hub.yaml",
        manifest: "hub/hub.yaml",
        condition: "not .Values.cluster.enabled",
        values: &[IMAGE, TLS, HUB_CPU, HUB_MEMORY, ("storage: 20Gi\n", "storage: {{ .Values.hub.storage }}\n")],
    },
    Template {
        path: "cluster.yaml",
        manifest: "cluster/hub.yaml",
        condition: ".Values.cluster.enabled",
        values: &[
            IMAGE,
            TLS,
            HUB_CPU,
            HUB_MEMORY,
            ("replicas: 3\n", "replicas: {{ .Values.cluster.replicas }}\n"),
            ("secretName: watchglass-hub\n", "secretName: {{ .Values.cluster.secret }}\n"),
            ("sizeLimit: 20Gi\n", "sizeLimit: {{ .Values.hub.storage }}\n"),
        ],
    },
];

/// The template of a manifest: values, the namespace, and a sum of the configuration, so that pods follow a change.
fn template(template: &Template) -> String {
    let mut text = read(&at("kubernetes").join(template.manifest));
    for (from, to) in template.values {
        assert!(text.contains(from), "{}: no {from}", template.manifest);
        text = text.replace(from, to);
    }
    let config =
        if template.path == "agent.yaml" { ".Values.agent.config" } else { "(include \"watchglass.hubConfig\" .)" };
    let sum = format!("      annotations:\n        checksum/config: {{{{ tpl {config} . | sha256sum }}}}\n");
    text = text.replace("\n    metadata:\n      labels:", &format!("\n    metadata:\n{sum}      labels:"));
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        lines.push(line.to_owned());
        if lines.len() > 1 && lines[lines.len() - 2] == "metadata:" && line.starts_with("  name: ") {
            lines.push("  namespace: {{ .Release.Namespace }}".to_owned());
        }
    }
    let text = lines.join("\n") + "\n";
    match template.condition {
        "" => text,
        condition => format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"),
    }
}

/// A configuration file as a value: its lines, indented, with the namespace of the release.
fn config(file: &str) -> String {
    let text = read(&at("kubernetes").join(file)).replace(".watchglass.svc", ".{{ .Release.Namespace }}.svc");
    assert!(text.contains("{{ .Release.Namespace }}"), "{file}");
    text.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("    {line}\n") }).collect()
}

fn values() -> String {
    let (hub, cluster, agent) = (config("hub/hub.toml"), config("cluster/hub.toml"), config("base/agent.toml"));
    format!(
        "# Values of the chart. The texts named config are files of Watchglass, in which {{{{ .Release.Namespace }}}} is filled in.\n\
         image:\n  # Your registry, with the image of cargo xtask dist\n  repository: registry.example.org/watchglass\n  \
         # Tag of the image; empty: the version of the chart\n  tag: \"\"\n\n\
         hub:\n  # hub.toml of one hub: write the address that people type into public_url\n  config: |\n{hub}  \
         # Secret with tls.crt and tls.key; the certificate also has the name watchglass.NAMESPACE.svc\n  tlsSecret: watchglass-tls\n  \
         # Size of the volume with the samples\n  storage: 20Gi\n  # Requested CPU, and limit of the memory\n  cpu: 200m\n  memory: 2Gi\n\n\
         cluster:\n  # Several hubs in place of one, over your PostgreSQL, NATS and sample store\n  enabled: false\n  \
         # One hub for each thousand machines, and one more\n  replicas: 3\n  # Secret with database-password and secret.key\n  secret: watchglass-hub\n  \
         # hub.toml of each hub, with the addresses of your services\n  config: |\n{cluster}\n\
         agent:\n  # agent.toml of each node\n  config: |\n{agent}  # Secret with key (a join key) and ca.crt\n  secret: watchglass-agent\n  \
         # Folder on the node for the samples and the identity of the machine\n  dataDir: /var/lib/watchglass-agent\n  \
         # Requested CPU, and limit of the memory\n  cpu: 20m\n  memory: 512Mi\n  # nvidia with the operator of NVIDIA\n  runtimeClassName: \"\"\n"
    )
}

/// The version of the workspace.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// All files of the chart, by their path in it.
fn files() -> BTreeMap<String, String> {
    let about = format!(
        "apiVersion: v2\nname: watchglass\ndescription: Live dashboard for the machines that train models\ntype: application\n\
         version: {0}\nappVersion: \"{0}\"\nkubeVersion: \">=1.25.0-0\"\n",
        version()
    );
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: watchglass-hub\n  namespace: {{ .Release.Namespace }}\ndata:\n  \
         hub.toml: |\n    {{- tpl (include \"watchglass.hubConfig\" .) . | nindent 4 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  \
         name: watchglass-agent\n  namespace: {{ .Release.Namespace }}\ndata:\n  agent.toml: |\n    \
         {{- tpl .Values.agent.config . | nindent 4 }}\n";
    let helpers = "{{- define \"watchglass.hubConfig\" -}}\n{{- if .Values.cluster.enabled -}}\n{{ .Values.cluster.config }}\n\
         {{- else -}}\n{{ .Values.hub.config }}\n{{- end -}}\n{{- end -}}\n";
    let mut files: BTreeMap<String, String> =
        TEMPLATES.iter().map(|one| (format!("templates/{}", one.path), template(one))).collect();
    files.insert("Chart.yaml".into(), about);
    files.insert("values.yaml".into(), values());
    files.insert("templates/config.yaml".into(), config.into());
    files.insert("templates/_helpers.tpl".into(), helpers.into());
    files
}

#[test]
fn the_chart_is_generated_from_the_manifests() {
    let update = std::env::var_os("UPDATE").is_some();
    for (path, text) in files() {
        let place = chart().join(&path);
        if update {
            std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
            std::fs::write(&place, &text).expect("written");
        }
        let written = std::fs::read_to_string(&place).unwrap_or_default();
        assert!(written == text, "{path} differs from the manifests; write it with UPDATE=1 and this test");
    }
    for folder in ["", "templates"] {
        for entry in std::fs::read_dir(chart().join(folder)).expect("a folder").flatten() {
            let name = entry.path().strip_prefix(chart()).expect("below it").display().to_string();
            assert!(entry.path().is_dir() || files().contains_key(&name), "{name} is made of nothing");
        }
    }
}

/// An object without the parts in which a chart and kustomize differ: hashes in names of ConfigMaps, and the sum of the
/// configuration.
fn plain(mut object: Value, hashed: &[String]) -> Value {
    fn names(value: &mut Value, hashed: &[String]) {
        match value {
            Value::String(text) => {
                if let Some(name) = hashed.iter().find(|name| **name == *text) {
                    *text = name.rsplit_once('-').expect("a hash").0.to_owned();
                }
            }
            Value::Array(all) => all.iter_mut().for_each(|one| names(one, hashed)),
            Value::Object(fields) => {
                // Kustomize writes the octal numbers of rights as decimal ones.
                let octal = fields.get("defaultMode").and_then(Value::as_str).filter(|mode| mode.starts_with('0'));
                if let Some(mode) = octal.map(|mode| u32::from_str_radix(mode, 8).expect("octal digits")) {
                    fields["defaultMode"] = mode.to_string().into();
                }
                fields.values_mut().for_each(|one| names(one, hashed));
            }
            _ => {}
        }
    }
    names(&mut object, hashed);
    if let Some(metadata) = object.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
    for text in object.get_mut("data").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        *text = text.as_str().unwrap_or_default().trim_end().into();
    }
    object
}

/// The objects by kind and name, without the Namespace, which a chart needs before it is installed.
fn objects(all: Vec<Value>) -> BTreeMap<String, Value> {
    let hashed: Vec<String> = all
        .iter()
        .filter(|object| object["kind"] == "ConfigMap")
        .map(|object| object["metadata"]["name"].as_str().expect("a name").to_owned())
        .filter(|name| !["watchglass-hub", "watchglass-agent"].contains(&name.as_str()))
        .collect();
    let plain = all.into_iter().map(|object| plain(object, &hashed));
    let named = plain.map(|object| (format!("{} {}", object["kind"], object["metadata"]["name"]), object));
    named.filter(|(name, _)| !name.starts_with("\"Namespace\"")).collect()
}

fn parsed(text: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("all.yaml");
    std::fs::write(&file, text).expect("written");
    yaml::documents(&file).into_iter().filter(Value::is_object).collect()
}

/// The objects of a folder, as kustomize makes them.
fn kustomized(set: &str) -> BTreeMap<String, Value> {
    let folder = at("kubernetes").join(set);
    let output = programs::run("kubectl", &["kustomize", folder.to_str().expect("a plain path")], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    objects(parsed(&String::from_utf8_lossy(&output.stdout)))
}

fn compare(set: &str, made: &BTreeMap<String, Value>) {
    let wanted = kustomized(set);
    assert_eq!(made.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "{set}");
    for (name, object) in &wanted {
        assert_eq!(&made[name], object, "{set}: {name}");
    }
}

/// The chart rendered by Helm itself, with these values.
fn rendered(values: &Value) -> BTreeMap<String, Value> {
    const RENDER: &str = "import json, sys, helm_python as helm\n\
        path, values = sys.argv[1], json.loads(sys.argv[2])\n\
        found = [m for m in helm.chart.lint(path, values, strict=True)['messages'] if m['severity'] > 1]\n\
        assert not found, found\n\
        for text in helm.Chart.load(path).render(values, name='watchglass', namespace='watchglass').values(): print('---\\n' + text)";
    let python = std::env::var("WATCHGLASS_HELM").expect("the path of a Python with helm-python-sdk");
    let output = command(python).args(["-c", RENDER]).arg(chart()).arg(values.to_string()).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    objects(parsed(&String::from_utf8_lossy(&output.stdout)))
}

#[test]
#[ignore = "needs WATCHGLASS_HELM, the path of a Python with helm-python-sdk, and kubectl"]
fn with_helm_the_chart_makes_what_kustomize_makes() {
    compare("hub", &rendered(&json!({})));
    compare("cluster", &rendered(&json!({ "cluster": { "enabled": true } })));
    let own = rendered(&json!({
        "image": { "repository": "r.example.org/w", "tag": 9 },
        "agent": { "runtimeClassName": "nvidia", "memory": "1Gi" },
        "hub": { "storage": "90Gi", "config": "public_url = \"https://w.{{ .Release.Namespace }}.example.org/\"\n" },
    }));
    let (agent, hub) = (
        &own["\"DaemonSet\" \"watchglass-agent\""]["spec"]["template"]["spec"],
        &own["\"StatefulSet\" \"watchglass\""],
    );
    assert_eq!(
        (&agent["runtimeClassName"], &agent["containers"][0]["image"]),
        (&"nvidia".into(), &"r.example.org/w:9".into())
    );
    assert_eq!(agent["containers"][0]["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(hub["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "90Gi");
    let config = &own["\"ConfigMap\" \"watchglass-hub\""]["data"]["hub.toml"];
    assert_eq!(config, &format!("public_url = \"https://w.{NAMESPACE}.example.org/\""));
}

#[test]
fn a_value_that_is_a_number_is_written_as_a_text_is() {
    // Go's `%s` writes a number as `%!s(int64=20260501)`.
    for (path, text) in files() {
        assert!(!text.contains("printf"), "{path}: a value may be a number, which %s does not write");
    }
}

#[test]
fn every_value_is_used_and_every_used_value_is_declared() {
    let [values] = &yaml::documents(&chart().join("values.yaml"))[..] else { panic!("one document") };
    let templates: String =
        files().iter().filter(|(path, _)| path.starts_with("templates/")).map(|(_, text)| text.as_str()).collect();
    let mut declared: Vec<String> = Vec::new();
    for (group, fields) in values.as_object().expect("groups") {
        declared.extend(fields.as_object().expect("fields").keys().map(|name| format!(".Values.{group}.{name}")));
    }
    for name in &declared {
        assert!(templates.contains(name.as_str()), "{name} is used by no template");
    }
    for used in templates.split(".Values.").skip(1) {
        let name: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
        assert!(declared.contains(&format!(".Values.{name}")), "{name} is no value");
    }
}

#[test]
fn the_page_about_deployment_has_every_value_with_its_default() {
    let page = read(&at("README.md"));
    let [values] = &yaml::documents(&chart().join("values.yaml"))[..] else { panic!("one document") };
    for (group, fields) in values.as_object().expect("groups") {
        for (name, default) in fields.as_object().expect("fields") {
            let line = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{group}.{name}`")));
            let line = line.unwrap_or_else(|| panic!("{group}.{name} is not described"));
            let default = default.as_str().expect("a text");
            let is_short = !default.is_empty() && !default.contains('\n');
            assert!(!is_short || line.contains(&format!("`{default}`")), "{group}.{name} is {default:?}: {line}");
        }
    }
}
