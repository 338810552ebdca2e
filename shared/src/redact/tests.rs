//! Lines and arguments with and without secrets.

use super::*;

fn hidden(line: &str, found: Vec<Range<usize>>) -> String {
    assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start), "{found:?} of {line}");
    let mut line = line.to_string();
    found.into_iter().rev().for_each(|part| line.replace_range(part, HIDDEN));
    line
}

fn shown(line: &str) -> String {
    hidden(line, secrets(line))
}

/// Lines in which `§` is before and after each secret.
fn marked(lines: &[&str]) {
    let mut wrong = Vec::new();
    for marked in lines {
        let parts: Vec<&str> = marked.split('§').collect();
        assert_eq!(parts.len() % 2, 1, "{marked}");
        let line = parts.concat();
        let expected = parts.iter().enumerate().map(|(at, part)| if at % 2 == 1 { HIDDEN } else { part });
        if shown(&line) != expected.collect::<String>() {
            wrong.push(format!("{line}\n  {}", shown(&line)));
        }
        // As arguments, where words alone identify secrets.
        let is_plain = !marked.contains(['"', '\'']) && !marked.contains(": ") && !marked.contains(" is ");
        let args = arguments(&line.bytes().map(|byte| if byte == b' ' { 0 } else { byte }).collect::<Vec<_>>());
        let mut secrets = parts.iter().skip(1).step_by(2);
        if is_plain && line.contains(" -") && secrets.any(|secret| args.contains(secret)) {
            wrong.push(format!("{line}\n  {args}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// This many letters and digits, mixed as in a key.
macro_rules! key {
    (30) => {
        "a8Kd02mXq7Rt5bZw1LpVy4Nc9Gh3Js"
    };
    (36) => {
        "a8Kd02mXq7Rt5bZw1LpVy4Nc9Gh3JsE6uTfQ"
    };
    (hex32) => {
        "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
    };
    (hex40) => {
        "9f8e7d6c5b4a39281706f5e4d3c2b1a0a1b2c3d4"
    };
}

#[test]
fn keys_of_services_are_hidden_wherever_they_stand() {
    marked(&[
        "login with §hf_abcdefghijklmnopqrstuvwxyzABCDEFGH§ now",
        concat!("pushed by §glpat-", "x1-Y2_z3abcdefghijkl", "§."),
        concat!("runner §glrt-", key!(30), "§"),
        concat!("token (§ghp_", key!(36), "§)"),
        concat!("§gho_", key!(36), "§ and §ghs_", key!(36), "§"),
        concat!("§github_pat_11ABCDEFG0_", key!(36), "§"),
        concat!("openai §sk-", key!(36), "§"),
        concat!("§sk-proj-", key!(30), "-", key!(30), "§"),
        concat!("§sk-ant-api03-", key!(36), "-AA§"),
        concat!("§sk-or-v1-", key!(hex40), "§"),
        concat!("groq §gsk_", key!(36), "§"),
        concat!("replicate §r8_", key!(36), "§"),
        concat!("ngc §nvapi-", key!(36), "-", key!(30), "§"),
        concat!("§npm_", key!(36), "§"),
        concat!("§pypi-AgEIcHlwaS5vcmc", key!(36), "§"),
        "§xoxb-123456789012-1234567890123-AbCdEfGhIjKl§",
        "§xoxp-1234567890-abcdef§",
        "§xapp-1-A0123-456-abc§",
        "POST https://hooks.slack.com/§services/T000/B000/XXXXXXXXXXXX§ 200",
        "POST https://discord.com/api/webhooks/§123456/abc_DEF-ghi§ 204",
        "id AKIAIOSFODNN7EXAMPLE".replace("AKIAIOSFODNN7EXAMPLE", "§AKIAIOSFODNN7EXAMPLE§").leak(),
        "§AKIAIOSFODNN7EXAMPLE§,§wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY§",
        "§ASIAIOSFODNN7EXAMPLE§ §wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY§",
        concat!("maps §AIzaSy", key!(36), "§"),
        concat!("§ya29.", key!(36), "§"),
        concat!("§GOCSPX-", key!(30), "§"),
        "§eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpM§",
        concat!("§sk_live_", key!(30), "§ §rk_test_", key!(30), "§"),
        concat!("§whsec_", key!(36), "§"),
        concat!("twilio §SK", key!(hex32), "§"),
        concat!("§SG.", key!(30), ".", key!(36), "§"),
        concat!("§dop_v1_", key!(hex40), "§"),
        concat!("§dckr_pat_", key!(30), "§"),
        concat!("§hvs.", key!(36), "§"),
        concat!("§shpat_", key!(hex32), "§"),
        concat!("telegram 123456789:§AAE", key!(36), "§"),
        concat!("something §", key!(36), "§ long and mixed"),
        concat!("md5 or key §", key!(hex32), "§"),
        "git clone https://§me:pw@§host.example/a@b".replace("@§", "§@").leak(),
        "postgres://§app:s3cr3t§@db:5432/x and redis://§:pw§@cache/0",
        "https://x.blob.core.windows.net/c/f?sv=2022&sig=§aB%2Fc%3D§&se=2024",
        "https://s3/x?X-Amz-Signature=§abcdef0123§&X-Amz-Date=20240101",
        "https://api/x?access_token=§abc§&page=2",
        "-----BEGIN".replace("-----BEGIN", "§-----BEGIN PRIVATE KEY-----\\nMIIEvQ\\n-----END PRIVATE KEY-----§").leak(),
    ]);
}

#[test]
fn values_behind_the_name_of_a_secret_are_hidden() {
    marked(&[
        "DB_PASS=§hunter2§",
        "MYSQL_PWD=§hunter2§ mysqldump x",
        "export PGPASSWORD=§hunter2§",
        "PGPASSWORD='§two words§' psql",
        "dbPassword=§x1§ DB_PASSWORD = §x1§",
        "passphrase: §correct horse battery staple§",
        "{\"pwd\": \"§hunter2§\", \"lr\": 3}",
        "{\"api_key\": \"§abc§\", \"lr\": 3}",
        "{\"api_key\":\"§abc§\"} x",
        "{'password': '§it is §'}".replace("§it is §", "§it is§").leak(),
        "{\"pin\": §1234§, \"pin_memory\": true}",
        "pin: §4321§",
        "password: §hunter2§",
        "the password is §hunter2§ !",
        "the password is §swordfish§",
        "password §hunter2§",
        "password=§1234§",
        "  indented\tpassword:\t§x§  y",
        "Server=db;User=me;Password=§x y§;Timeout=3".replace("§x y§", "§x§").leak(),
        "API_KEY=§abc§ and WANDB_API_KEY=§abc§",
        concat!("wandb api key: §", key!(hex40), "§"),
        concat!("WANDB_API_KEY §", key!(hex40), "§"),
        "AccountKey=§abc123==§;EndpointSuffix=core.windows.net",
        "aws_secret_access_key = §abc§",
        "AuthenticationError: Incorrect API key provided: §sk-abc§",
        "Authorization: Bearer §abc.def§",
        "Authorization: Basic §bWU6cHc=§",
        "authorization: §abcdef§",
        "got Bearer §x1y2z3§ from it",
        "Bearer §abc§",
        "Proxy-Authorization: Basic §bWU6cHc=§",
        "Cookie: §a=b; session=c§",
        "Set-Cookie: §session=abc; Path=/§",
        "client_secret=§abc§&grant_type=x",
        "hf_token: §abc§",
        "+ python t.py --token §abc§ --lr 3",
        "x --api-key §abc§ --n 3",
        "x --PASSWORD §ab§ c",
        "x --db-pass §ab§",
        "mysql -u root -p§hunter2§ -e 'show tables'",
        "sshpass -p §hunter2§ ssh host",
        "curl -u §me:hunter2§ https://host",
        "curl -s -u§me:hunter2§ https://host",
        "curl --user §me:hunter2§ https://host",
        "docker login -u me -p §hunter2§ host",
        "redis-cli -a §hunter2§ ping",
        "openssl rsa -passin pass:§hunter2§ -in x.pem",
        "password := §abc§ and secret => §abc§",
        "usé passwörter 数 password=§数§",
    ]);
}

/// The lines of a stream; those with true are hidden entirely.
fn stream(lines: &[(&str, bool)]) {
    let mut redactor = Redactor::default();
    for (line, is_hidden) in lines {
        let found = redactor.secrets(line);
        let text = line.trim();
        let begin = line.len() - line.trim_start().len();
        let whole: Vec<Range<usize>> = std::iter::once(begin..begin + text.len()).filter(|_| *is_hidden).collect();
        assert_eq!(found, whole, "{line}");
    }
}

#[test]
fn a_secret_may_stand_on_the_lines_behind_its_name() {
    stream(&[("Password:", false), ("hunter2", true), ("next", false)]);
    stream(&[("Your new API key:", false), ("", false), ("  abc", true), ("abc", false)]);
    stream(&[("Enter password: ", false), ("Logging in as ann", false), ("done1", false)]);
    stream(&[("tokens:", false), ("128", false), ("password:", false), ("none", false), ("x9", false)]);
    stream(&[
        ("db:", false),
        ("  password: |", false),
        ("    hunter2", true),
        ("", false),
        ("    more words", true),
        ("  user: ann", false),
        ("    deeper", false),
    ]);
    let key = [
        ("-----BEGIN OPENSSH PRIVATE KEY-----", true),
        ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU=", true),
        ("-----END OPENSSH PRIVATE KEY-----", true),
        ("step 3", false),
    ];
    stream(&key);
    // A key without an end hides no more than a key has.
    let mut redactor = Redactor::default();
    redactor.secrets(key[0].0);
    let long = (0..1_000).filter(|_| !redactor.secrets("step 3").is_empty()).count();
    assert_eq!(long, MAX_BLOCK_LINES as usize);
    // A skipped line still announces the next one.
    let mut redactor = Redactor::default();
    redactor.skip(b"password:  ");
    assert_eq!(redactor.secrets("hunter2"), std::iter::once(0..7).collect::<Vec<_>>());
    redactor.skip(key[0].0.as_bytes());
    redactor.skip(key[1].0.as_bytes());
    assert!(!redactor.secrets(key[1].0).is_empty());
    redactor.skip(key[2].0.as_bytes());
    assert!(redactor.secrets("step 3").is_empty());
}

#[test]
fn ordinary_text_is_kept_whole() {
    let lines = [
        "step 3 loss=0.25 tokens/s: 1,234.5 | n_tokens=4096",
        "tokens_per_s=12400 max_tokens=512 tokens: 1024",
        "token 12 of 400",
        "processed token 12 of 400, next_token: 7, token=12",
        "pad_token='<pad>' eos_token: </s> bos_token=<s>",
        "Enter password:",
        "password: ",
        "the password is required, and the token is invalid",
        "password changed; password=None, password: ****, PASSWORD=$DB_PASSWORD, token=${TOKEN}",
        "<All keys matched successfully>",
        "Loading the tokenizer of the author: bert-base-uncased",
        "tokenizer=bert keyboard: us monkey=3 authors: Ann",
        "KeyError: 'lr'",
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        concat!("HEAD is now at ", key!(hex40), " fix"),
        "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "GPU-7c1a4f5e-90ab-4cde-8f01-23456789abcd MIG-7c1a4f5e-90ab-4cde-8f01-23456789abcd",
        "run 7c1a4f5e-90ab-4cde-8f01-23456789abcd began",
        "/data/checkpoints/llama-2-7b-chat-hf-step-00012000-of-00100000/model.safetensors",
        "events.out.tfevents.1700000000.node-1.12345.0",
        "/home/ann/.cache/huggingface/hub/models--meta-llama--Llama-2-7b/snapshots/da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "torch.Size([32, 1024, 4096]) dtype=torch.bfloat16 device=cuda:0",
        "attention_mask: (8, 512) key_padding_mask=None sort_key=loss primary_key=id",
        "RNG key: [0 42], prng_key=7, key=loss value=0.3",
        "PWD=/home/ann OLDPWD=/tmp pwd: /srv",
        "12 passed, pass: 3 fail: 0, second pass: computing loss, bypass=1",
        "pin_memory=True, GPIO pin: 12",
        "2024-01-02T03:04:05.678Z INFO worker[3]: epoch 3 done in 12:34",
        "http://host:8080/path?x=1&key=loss git@github.com:a/b.git ann@host.example",
        "npm_config_registry=https://registry.example.org npm_lifecycle_event=build",
        "sk-learn and sk-learn-contrib are packages; hf_hub_download(repo_id='a/b')",
        "basic block 3, bearer of news, Basic training begins",
        "docker run -p 8080:80 -u 1000:1000 image; ssh -p 22 host; train -p 3 -u",
        "DistributedDataParallelWithGradientAccumulationSteps4Config",
        "AKIA is a begin, eyJ is another, SG.x and key-value",
        "usé tökens 数",
    ];
    let wrong: Vec<String> = lines.iter().filter(|line| shown(line) != **line).map(|line| shown(line)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arguments_are_shown_without_secrets() {
    for (words, shown) in [
        (&["python3", "train.py", "--lr", "1e-4"][..], "python3 train.py --lr 1e-4"),
        (&["x", "--api-key", "abc", "--n", "3"], "x --api-key … --n 3"),
        (&["x", "--api-key=abc", "WANDB_API_KEY=abc"], "x --api-key=… WANDB_API_KEY=…"),
        (&["x", "-H", "Authorization: Bearer abc"], "x -H Authorization: Bearer …"),
        (&["x", "--PASSWORD", "a b", "c"], "x --PASSWORD … c"),
        (&["x", "--password=a b", "c"], "x --password=… c"),
        (&["x", "--token", "--quiet"], "x --token --quiet"),
        (&["x", "--max-tokens", "512", "--tokenizer", "bert"], "x --max-tokens 512 --tokenizer bert"),
        (&["mysql", "-uroot", "-pa=b", "db"], "mysql -uroot -p… db"),
        (&["/usr/bin/curl", "-u", "me:pw", "https://h"], "/usr/bin/curl -u … https://h"),
        (&["git", "clone", "https://me:pw@host.example/a@b"], "git clone https://…@host.example/a@b"),
        (&["x", "https://host.example/a@b"], "x https://host.example/a@b"),
        (&["x", key!(hex32)], "x …"),
        (&["x", concat!("run=", key!(hex32), "/1")], "x run=…/1"),
        (
            &["/srv/a-very-long-path-without-any-number-in-it/train.py"],
            "/srv/a-very-long-path-without-any-number-in-it/train.py",
        ),
        (&["a\nb\u{1b}[2J"], "ab[2J"),
    ] {
        let text: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
        assert_eq!(arguments(&text), shown);
    }
    assert_eq!(arguments(b""), "");
    let long: Vec<u8> = (0..1_000).flat_map(|_| "wörd\0".bytes()).collect();
    assert!((MAX_BYTES - 8..=MAX_BYTES).contains(&arguments(&long).len()));
    assert_eq!(arguments(b"x\0--token=\xff\0"), "x --token=…");
}

#[test]
fn whatever_bytes_stand_there_the_parts_are_whole_and_apart() {
    // Bounded runs of words from the tables, in any order.
    let parts = [
        "password",
        "=",
        ":",
        " ",
        "\"",
        "é",
        "-p",
        "curl",
        "eyJ",
        "AKIA",
        "key",
        "://",
        "@",
        "|",
        "a1B2",
        "Bearer",
        "-----BEGIN PRIVATE KEY",
    ];
    let mut seed = 1u64;
    let mut redactor = Redactor::default();
    for _ in 0..20_000 {
        let mut line = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            line += parts[(seed >> 33) as usize % parts.len()];
        }
        hidden(&line, redactor.secrets(&line));
    }
}
