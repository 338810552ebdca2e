//! The Kubernetes manifests, read as kustomize reads them, and checked against the API's schema and our documentation.

use super::{at, read, reads, takes, texts, yaml};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use watchglass_tests::hub::Hub;
use watchglass_tests::programs;
use watchglass_tests::server::ask;

const SETS: [&str; 2] = ["kubernetes/hub", "kubernetes/cluster"];

/// Objects of a folder.
#[derive(Default)]
struct Set {
    objects: Vec<Value>,
    /// Files of generated ConfigMaps: name of the map, name of the file, and the text.
    configs: Vec<(String, String, String)>,
    images: Vec<String>,
}

/// Reads a folder, and its bases.
fn set(folder: &Path) -> Set {
    let [kustomization] = &yaml::documents(&folder.join("kustomization.yaml"))[..] else { panic!("one document") };
    fields("kustomization", kustomization, "apiVersion kind namespace resources configMapGenerator images replicas");
    assert_eq!(kustomization["apiVersion"], "kustomize.config.k8s.io/v1beta1");
    assert_eq!(kustomization["namespace"], "watchglass");
    let mut all = Set::default();
    for resource in texts(&kustomization["resources"]) {
        match resource.ends_with(".yaml") {
            true => all.objects.extend(yaml::documents(&folder.join(resource))),
            false => {
                let below = set(&folder.join(resource));
                all.objects.extend(below.objects);
                all.configs.extend(below.configs);
            }
        }
    }
    for map in kustomization["configMapGenerator"].as_array().into_iter().flatten() {
        for file in texts(&map["files"]) {
            all.configs.push((text(map, "name"), file.into(), read(&folder.join(file))));
        }
    }
    all.images = kustomization["images"].as_array().into_iter().flatten().map(|image| text(image, "name")).collect();
    for image in kustomization["images"].as_array().into_iter().flatten() {
        assert_eq!(
            text(image, "newTag"),
            env!("CARGO_PKG_VERSION"),
            "the image of the release that has these manifests"
        );
    }
    for replicas in kustomization["replicas"].as_array().into_iter().flatten() {
        let named = |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == replicas["name"];
        assert!(all.objects.iter().any(|object| named(&object)), "{replicas}");
    }
    all
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}")).to_owned()
}

/// A misspelled field would be dropped silently by the API.
fn fields(place: &str, value: &Value, known: &str) {
    for name in value.as_object().unwrap_or_else(|| panic!("{place}: no object")).keys() {
        assert!(known.split(' ').any(|known| known == name), "{place}: there is no field {name}");
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn labels(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("no labels in {value}"))
}

fn selects(selector: &Value, of: &Value) -> bool {
    labels(selector).iter().all(|(key, value)| of.get(key) == Some(value))
}

/// Kinds, their version and the fields of their spec.
const KINDS: [(&str, &str, &str); 6] = [
    ("Namespace", "v1", ""),
    ("Service", "v1", "selector ports"),
    ("DaemonSet", "apps/v1", "selector updateStrategy template"),
    ("StatefulSet", "apps/v1", "serviceName replicas selector template volumeClaimTemplates"),
    ("Deployment", "apps/v1", "replicas strategy selector template"),
    ("PodDisruptionBudget", "policy/v1", "maxUnavailable selector"),
];

/// The container starts with valid arguments and minimal permissions.
fn container(set: &Set, kind: &str, container: &Value) {
    let place = format!("{kind}/{}", text(container, "name"));
    fields(
        &place,
        container,
        "name image args env ports startupProbe readinessProbe livenessProbe resources securityContext volumeMounts",
    );
    assert!(set.images.contains(&text(container, "image")), "{place}: its image is named by nobody");
    let args = texts(&container["args"]);
    takes(&place, &args);
    let config = args[args.iter().position(|arg| *arg == "--config").expect("a configuration") + 1];
    let mounts: Vec<(String, String)> =
        list(container, "volumeMounts").iter().map(|mount| (text(mount, "name"), text(mount, "mountPath"))).collect();
    let (map, file) =
        config.strip_prefix("/config/").map(|file| (format!("watchglass-{}", args[0]), file)).expect(&place);
    let written = set.configs.iter().find(|(name, own, _)| *name == map && own == file);
    let (_, _, written) = written.unwrap_or_else(|| panic!("{place}: {config} is in no ConfigMap"));
    reads(&place, args[0], written);
    // Each path in it is mounted.
    for path in written.split('"').filter(|word| word.starts_with('/')) {
        let is_below =
            |(_, mount): &(String, String)| Path::new(mount).starts_with(path) || Path::new(path).starts_with(mount);
        assert!(mounts.iter().any(is_below), "{place}: {path} is not mounted");
    }
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"].iter().filter_map(|name| container.get(name)) {
        fields(
            &place,
            probe,
            "httpGet tcpSocket exec initialDelaySeconds periodSeconds timeoutSeconds failureThreshold successThreshold",
        );
        if let Some(get) = probe.get("httpGet") {
            assert_eq!((get["path"].as_str(), get["scheme"].as_str()), (Some("/healthz"), Some("HTTPS")), "{place}");
            assert_eq!(
                (&get["httpHeaders"][0]["name"], &get["httpHeaders"][0]["value"]),
                (&"Host".into(), &"localhost".into())
            );
        }
        for port in ["httpGet", "tcpSocket"].iter().filter_map(|how| probe.get(how)) {
            assert!(list(container, "ports").iter().any(|own| own["name"] == port["port"]), "{place}: {port}");
        }
        if let Some(exec) = probe.get("exec") {
            let [program, args @ ..] = &texts(&exec["command"])[..] else { panic!("{place}: no command") };
            assert_eq!(*program, "/usr/bin/watchglass", "there is no other program in the image");
            takes(&place, args);
        }
    }
    let rights = &container["securityContext"];
    assert_eq!(
        (rights["allowPrivilegeEscalation"].as_str(), rights["readOnlyRootFilesystem"].as_str()),
        (Some("false"), Some("true"))
    );
    assert_eq!(texts(&rights["capabilities"]["drop"]), ["ALL"], "{place}");
    assert!(container["resources"]["limits"]["memory"].is_string(), "{place}: it is bounded");
}

/// The pods of a kind.
fn pods(set: &Set, object: &Value) {
    let (kind, spec) = (text(object, "kind"), &object["spec"]);
    let pod = &spec["template"]["spec"];
    assert!(selects(&spec["selector"]["matchLabels"], &spec["template"]["metadata"]["labels"]), "{kind}");
    fields(
        &kind,
        pod,
        "automountServiceAccountToken enableServiceLinks hostPID hostNetwork dnsPolicy terminationGracePeriodSeconds tolerations \
         topologySpreadConstraints securityContext containers volumes",
    );
    assert_eq!(pod["automountServiceAccountToken"], "false", "{kind} asks the API for nothing");
    list(pod, "containers").iter().for_each(|own| container(set, &kind, own));
    let claims = list(spec, "volumeClaimTemplates").iter().map(|claim| text(&claim["metadata"], "name"));
    let volumes: BTreeSet<String> =
        list(pod, "volumes").iter().map(|volume| text(volume, "name")).chain(claims).collect();
    let mounted = list(pod, "containers").iter().flat_map(|own| list(own, "volumeMounts"));
    assert_eq!(mounted.map(|mount| text(mount, "name")).collect::<BTreeSet<_>>(), volumes, "{kind}: each is mounted");
    for volume in list(pod, "volumes") {
        fields(&kind, volume, "name hostPath configMap secret emptyDir");
        if let Some(map) = volume.get("configMap") {
            assert!(set.configs.iter().any(|(name, ..)| map["name"] == **name), "{kind}: {map}");
        }
    }
    let grace: u64 = text(pod, "terminationGracePeriodSeconds").parse().expect("seconds");
    match kind.as_str() {
        "DaemonSet" => {
            assert_eq!((pod["hostPID"].as_str(), pod["hostNetwork"].as_str()), (Some("true"), Some("true")));
            let env = &pod["containers"][0]["env"][0];
            assert_eq!(
                (&env["name"], &env["valueFrom"]["fieldRef"]["fieldPath"]),
                (&"NODE_NAME".into(), &"spec.nodeName".into())
            );
            let data = list(pod, "volumes").iter().find(|volume| volume["name"] == "data").expect("data");
            assert!(data["hostPath"].is_object(), "what it keeps outlives the pod");
            let config = &set.configs.iter().find(|(name, ..)| name == "watchglass-agent").expect("theirs").2;
            assert!(config.contains("root = \"/host\""), "{config}");
        }
        _ => {
            assert!(grace > 15, "{kind}: a hub takes 15 s to let go of its agents");
            let user = &pod["securityContext"];
            assert_eq!((user["runAsNonRoot"].as_str(), user["runAsUser"].as_str()), (Some("true"), Some("65532")));
            // fsGroup gives the group all rights to a volume, and a hub refuses a folder that others may write to.
            assert_eq!((&user["fsGroup"], &user["fsGroupChangePolicy"]), (&"65532".into(), &"OnRootMismatch".into()));
            let config = &set.configs.iter().find(|(name, ..)| name == "watchglass-hub").expect("its own").2;
            let folder = config.lines().find_map(|line| line.strip_prefix("data_dir = ")).expect("a folder");
            let mounts = list(&pod["containers"][0], "volumeMounts");
            let data = mounts.iter().find(|mount| mount["name"] == "data").expect("data");
            let below = format!("\"{}/", text(data, "mountPath"));
            assert!(folder.starts_with(&below), "{kind}: {folder} is the volume itself");
        }
    }
}

#[test]
fn manifests_are_what_the_api_takes_and_start_what_the_program_knows() {
    for folder in SETS {
        let set = set(&at(folder));
        let mut names = BTreeSet::new();
        for object in &set.objects {
            let kind = text(object, "kind");
            fields(&kind, object, "apiVersion kind metadata spec");
            fields(&kind, &object["metadata"], "name labels");
            let (_, version, known) =
                KINDS.iter().find(|(own, ..)| *own == kind).unwrap_or_else(|| panic!("{folder}: {kind}"));
            assert_eq!(text(object, "apiVersion"), **version, "{kind}");
            if !known.is_empty() {
                fields(&kind, &object["spec"], known);
                known
                    .split(' ')
                    .for_each(|name| assert!(!object["spec"][name].is_null(), "{folder}: {kind} has no {name}"));
            }
            assert!(names.insert((kind.clone(), text(&object["metadata"], "name"))), "{folder}: {kind} stands twice");
            if object["spec"]["template"].is_object() {
                pods(&set, object);
            }
        }
        let hubs = |object: &&Value| ["StatefulSet", "Deployment"].iter().any(|kind| object["kind"] == *kind);
        let [hub] = &set.objects.iter().filter(hubs).collect::<Vec<_>>()[..] else {
            panic!("{folder}: one kind of hub")
        };
        let template = &hub["spec"]["template"];
        for object in &set.objects {
            let own = &object["spec"]["selector"];
            match object["kind"].as_str() {
                Some("Service") => {
                    assert!(selects(own, &template["metadata"]["labels"]), "the Service leads to the hubs");
                    let agents = set.objects.iter().find(|object| object["kind"] == "DaemonSet").expect("agents");
                    assert!(!selects(own, &agents["spec"]["template"]["metadata"]["labels"]), "and to them alone");
                    let port = &object["spec"]["ports"][0]["targetPort"];
                    let ports = list(&template["spec"]["containers"][0], "ports");
                    assert!(ports.iter().any(|own| own["name"] == *port), "{folder}: {port}");
                }
                Some("PodDisruptionBudget") => {
                    assert!(selects(&own["matchLabels"], &template["metadata"]["labels"]), "{folder}");
                }
                _ => {}
            }
        }
        let config = &set.configs.iter().find(|(name, ..)| name == "watchglass-hub").expect("the hub's").2;
        let port = list(&template["spec"]["containers"][0], "ports")[0]["containerPort"].as_str().expect("a port");
        assert!(config.contains(&format!("\nport = {port}\n")), "{folder}: it listens where it is asked");
        let many = hub["kind"] == "Deployment";
        assert_eq!(hub["spec"]["replicas"] == "1", !many, "{folder}");
        for table in ["[database]", "[remote_write]", "[cluster]"] {
            assert_eq!(config.contains(&format!("\n{table}\n")), many, "{folder}: {table}");
        }
    }
}

#[test]
fn a_hub_says_to_whom_asks_by_its_address_how_it_does_under_the_name_that_probes_use() {
    let hub = Hub::start(["--no-local", "--public-url", "https://watch.example.org/"]);
    let health = |host: &str| {
        ask(hub.server.addr(), &format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).status
    };
    assert_eq!((health("localhost"), health("watch.example.org")), (200, 200));
    assert_eq!(health("10.1.2.3:7171"), 421, "hence the header");
}

#[test]
#[ignore = "needs kubectl"]
fn with_kubectl_the_sets_are_put_together() {
    for folder in SETS {
        let output = programs::run("kubectl", &["kustomize", at(folder).to_str().expect("a plain path")], "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("image: registry.example.org/watchglass:"), "{text}");
        for (name, ..) in set(&at(folder)).configs {
            // A change of the file changes the pods, because its name contains a hash of its content.
            assert!(text.matches(&format!("name: {name}-")).count() >= 2, "{name}");
        }
    }
}
