//! Canaries: random texts in the place of every secret, sent along every road that there is, and then looked for in
//! everything that anybody can read afterwards.
//!
//! A credential may stand on the wire to its own service, once, and nowhere else. What callers say (arguments, ids) may
//! not stand in a log, in the ledger or in the store.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use e2e::client::Mcp;
use e2e::house::{Gate, House, secret_of};
use e2e::issuer::Issuer;
use e2e::orders;
use e2e::postgres::Postgres;
use e2e::service::{Service, json as answer};
use http::Method;
use serde_json::{Value, json};

const WAIVER: &str =
    "consent = { waived_by = \"Grace Hopper\", because = \"a test\", until = \"2199-12-31\" }";

fn fresh(what: &str) -> String {
    format!("canary-{what}-{}", uuid::Uuid::new_v4().simple())
}

/// A service with a credential of its own.
struct Guarded {
    name: &'static str,
    service: Service,
    /// What must not be seen.
    secret: String,
    /// What its variable holds: the secret, or another one that it is got with.
    variable: String,
    /// The lines that make the gate use it.
    credential: String,
    /// The secret as it has to arrive, and nothing else of it.
    on_the_wire: String,
}

async fn guarded() -> Vec<Guarded> {
    let mut all = Vec::new();
    for name in ["bearer", "basic", "header", "query", "cookie", "token"] {
        // Characters that one place or another has to escape.
        let secret = match name {
            "bearer" => fresh("bearer"),
            "basic" => format!("{}:\"\\/", fresh("password")),
            "header" => format!("{}\"\\/+", fresh("header")),
            "cookie" => format!("{}/+=%&", fresh("cookie-key")),
            "token" => format!("{}/+=%", fresh("token")),
            _ => format!("{}&/+=%", fresh("query")),
        };
        let variable = format!("SECRET_{}", name.to_uppercase());
        let (credential, on_the_wire) = match name {
            "bearer" => (
                format!("{{ bearer = \"env:{variable}\" }}"),
                format!("authorization: Bearer {secret}"),
            ),
            "basic" => (
                format!("{{ basic = {{ username = \"gate\", password = \"env:{variable}\" }} }}"),
                format!(
                    "authorization: Basic {}",
                    STANDARD.encode(format!("gate:{secret}"))
                ),
            ),
            "header" => (
                format!("{{ api_key = {{ header = \"x-key\", value = \"env:{variable}\" }} }}"),
                format!("x-key: {secret}"),
            ),
            "cookie" => (
                format!("{{ api_key = {{ cookie = \"key\", value = \"env:{variable}\" }} }}"),
                format!("cookie: key={secret}"),
            ),
            "token" => (
                format!(
                    "{{ oauth2 = {{ token_url = \"{}\", client_id = \"gate\", client_secret = \"env:{variable}\", \
                     method = \"post\", network = {{ allow = [\"127.0.0.1\"] }} }} }}",
                    tokens(&secret).await
                ),
                format!("authorization: Bearer {secret}"),
            ),
            _ => (
                format!("{{ api_key = {{ query = \"key\", value = \"env:{variable}\" }} }}"),
                format!(
                    "key={}",
                    secret
                        .replace('%', "%25")
                        .replace('&', "%26")
                        .replace('/', "%2F")
                        .replace('+', "%2B")
                        .replace('=', "%3D")
                ),
            ),
        };
        all.push(Guarded {
            name,
            service: Service::start(orders::usual).await,
            variable: match name {
                "token" => fresh("client-secret"),
                _ => secret.clone(),
            },
            secret,
            credential,
            on_the_wire,
        });
    }
    all
}

/// Starts a token endpoint that gives out this token and repeats in its answers what it was told.
async fn tokens(token: &str) -> String {
    let token = token.to_owned();
    let endpoint = Service::start(move |arrived| {
        let told = String::from_utf8_lossy(&arrived.body).into_owned();
        answer(
            200,
            &json!({"access_token":token,"token_type":"Bearer","expires_in":60,"you_said":told}),
        )
    });
    endpoint.await.url()
}

/// One house in front of all of them, that tells its log everything.
fn house(services: &[Guarded], owners: &Value, issuer: &Issuer) -> House {
    let mut config = "store = \"sqlite:tollhouse.db\"\n[stdio]\ncaller = \"ada\"\n\
        [caller.ada]\ntenant = \"north\"\nroles = [\"member\"]\n[caller.bob]\ntenant = \"south\"\n\
        [source.owners]\nfile = \"owners.json\"\n"
        .to_owned()
        + &issuer.config("corp");
    let mut policy = "@id(\"own\") permit (principal is Caller, action, resource is Order) \
                      when { resource.owner == principal.tenant };\n"
        .to_owned();
    let mut house = House::new().with_variable("TOLLHOUSE_LOG", "trace");
    for Guarded {
        name,
        service,
        variable,
        credential,
        ..
    } in services
    {
        let upper = name.to_uppercase();
        config.push_str(&format!(
            "[upstream.{name}]\nopenapi = \"orders.yaml\"\ndestination = \"env:URL_{upper}\"\n\
             network = {{ allow = [\"127.0.0.1/32\"] }}\ncredential = {credential}\nredirects = \"same-origin\"\n\
             [upstream.{name}.tool.read]\noperation = \"readOrder\"\nclass = \"read\"\n\
             resource = {{ type = \"Order\", id = \"$.id\" }}\nowner = {{ source = \"owners\" }}\n\
             [upstream.{name}.tool.report]\noperation = \"report\"\nclass = \"read\"\n\
             [upstream.{name}.tool.note]\noperation = \"addNote\"\nclass = \"write\"\n\
             approval.mutations = {{ by = \"a\", because = \"a test\", until = \"2099-12-31\", for = [\"everyone\"] }}\n\
             resource = {{ type = \"Order\", id = \"$.id\" }}\nowner = {{ source = \"owners\" }}\n{WAIVER}\n"
        ));
        policy.push_str(&format!(
            "@id(\"{name}\") permit (principal is Caller, action == Action::\"{name}_report\", resource);\n"
        ));
        house = house
            .with_variable(&format!("URL_{upper}"), service.url())
            .with_variable(&format!("SECRET_{upper}"), variable);
    }
    house
        .with_file("tollhouse.toml", config)
        .with_file("orders.yaml", orders::DOCUMENT)
        .with_file("owners.json", owners.to_string())
        .with_file("policy/all.cedar", policy)
}

/// Texts that somebody can read, with where they stood.
#[derive(Default)]
struct Seen(Vec<(String, String)>);

impl Seen {
    fn add(&mut self, place: impl Into<String>, bytes: impl AsRef<[u8]>) {
        let text = String::from_utf8_lossy(bytes.as_ref()).into_owned();
        self.0.push((place.into(), text));
    }

    /// Runs a command and keeps what it says.
    async fn run(&mut self, house: &House, arguments: &[&str]) {
        let output = house.run(arguments).await;
        let place = arguments.join(" ");
        self.add(format!("output of {place}"), output.stdout);
        self.add(format!("log of {place}"), output.stderr);
    }

    /// Sends a request and keeps the whole answer.
    async fn post(&mut self, what: &str, ada: &Mcp, url: &str, headers: &[(&str, &str)], message: &Value) {
        let own = ada.headers(message);
        let headers: Vec<(&str, &str)> = own
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain(headers.iter().copied())
            .collect();
        let sent = ada
            .http
            .send(Method::POST, url, &headers, message.to_string())
            .await;
        self.add(format!("headers for {what}"), format!("{:?}", sent.headers));
        self.add(format!("answer for {what}"), sent.body);
    }

    /// Every file of a folder and of those in it.
    fn files(&mut self, folder: &std::path::Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.files(&path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                self.add(format!("file {}", path.display()), bytes);
            }
        }
    }

    /// Where a text stands, in any spelling, among the places that a filter leaves.
    fn places(&self, canary: &str, filter: impl Fn(&str) -> bool) -> Vec<&str> {
        let needles = spellings(canary);
        self.0
            .iter()
            .filter(|(place, text)| filter(place) && needles.iter().any(|needle| text.contains(needle)))
            .map(|(place, _)| place.as_str())
            .collect()
    }
}

/// A canary as it could stand in a text: its random part is letters and digits, so that percent-encoding and escapes of
/// JSON leave it alone; Base64 in each of the three ways that it can be cut; hexadecimal.
fn spellings(canary: &str) -> Vec<String> {
    let core: String = canary
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
        .collect();
    let mut all = vec![core.clone()];
    for before in ["", "-", "--"] {
        let shifted = format!("{before}{core}");
        for encoded in [STANDARD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
            all.push(encoded[4..encoded.len() - 4].to_owned());
        }
    }
    let hex: String = core.bytes().map(|byte| format!("{byte:02x}")).collect();
    all.push(hex.to_uppercase());
    all.push(hex);
    all
}

#[test]
fn a_canary_is_found_in_every_spelling() {
    let canary = fresh("x");
    for text in [
        format!("a {canary} b"),
        STANDARD.encode(format!("a{canary}")),
        URL_SAFE_NO_PAD.encode(format!("ab{canary}cd")),
        canary.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ] {
        let mut seen = Seen::default();
        seen.add("here", &text);
        assert_eq!(seen.places(&canary, |_| true), ["here"], "{text}");
        assert!(seen.places(&fresh("x"), |_| true).is_empty());
    }
}

#[tokio::test]
async fn no_secret_is_ever_seen_and_what_callers_say_is_not_kept() {
    let services = guarded().await;
    let issuer = Issuer::start().await;
    let [own, others, unknown, argument, stray, note] =
        ["own-id", "others-id", "unknown-id", "argument", "stray", "note"].map(fresh);
    let owners = json!({"Order":{&own:"north",&others:"south"}});
    let house = house(&services, &owners, &issuer);
    let (ada_key, bob_key) = (house.key("ada").await, house.key("bob").await);
    let gate = house.serve().await;
    let mut seen = Seen::default();

    // Credentials of callers, good ones and others.
    let claim = fresh("claim");
    let token = |claims: Value| {
        let mut all = json!({"aud":gate.url,"sub":"ada","org_id":"north","roles":["member"],"extra":claim});
        all.as_object_mut()
            .unwrap()
            .extend(claims.as_object().unwrap().clone());
        issuer.token(all)
    };
    let good = token(json!({}));
    let bad = [
        token(json!({"exp":1})),
        token(json!({"aud":"https://other.example"})),
        format!("{}x", token(json!({}))),
        format!("th_0123456789abcdef_{}", fresh("key")),
        fresh("nonsense"),
    ];
    let [cookie, in_query, basic] = ["cookie", "in-query", "basic"].map(fresh);
    let mut secrets: Vec<String> = services.iter().map(|one| one.secret.clone()).collect();
    secrets.extend(
        services
            .iter()
            .filter(|one| one.name == "token")
            .map(|one| one.variable.clone()),
    );
    secrets.extend([claim.clone(), cookie.clone(), in_query.clone(), basic.clone()]);
    for key in [&ada_key, &bob_key, &bad[3]] {
        secrets.push(secret_of(key).to_owned());
    }
    secrets.push(bad[4].clone());
    // Payloads and signatures; the header of a token is the same for everybody who has one.
    for token in bad[..3].iter().chain([&good]) {
        secrets.extend(token.split('.').skip(1).map(str::to_owned));
    }

    // Every way through, over HTTP and in a session.
    for (who, credential) in [("by key", &ada_key), ("by token", &good)] {
        let modern = Mcp::modern(&gate.url, credential);
        let legacy = Mcp::legacy(&gate.url, credential, "2025-06-18").await;
        for client in [&modern, &legacy] {
            for Guarded { name, service, .. } in &services {
                let ask = |tool: &str, arguments: Value| {
                    client.request(
                        1,
                        "tools/call",
                        json!({"name":format!("{name}_{tool}"),"arguments":arguments}),
                    )
                };
                let messages = [
                    ask("read", json!({"id":own})),
                    ask("read", json!({"id":others})),
                    ask("read", json!({"id":unknown})),
                    ask("read", json!({"id":own,&stray:argument})),
                    ask("read", json!({"id":[argument]})),
                    ask("report", json!({"about":argument})),
                    ask("report", json!({"year":argument})),
                    ask("note", json!({"id":own,"text":note})),
                    ask("note", json!({"id":others,"text":note})),
                    client.request(1, "tools/list", json!({})),
                ];
                for message in &messages {
                    let what = format!("{name} {who}: {message}");
                    let headers = [("cookie", cookie.as_str())];
                    seen.post(&what, client, &gate.url, &headers, message).await;
                }
                assert!(service.count() >= 3, "{name}");
            }
        }
    }
    for (what, authorization) in bad
        .iter()
        .map(|token| format!("Bearer {token}"))
        .chain([format!("Basic {basic}"), basic.clone()])
        .map(|value| ("a bad credential", value))
    {
        let client = Mcp {
            token: None,
            ..Mcp::modern(&gate.url, "")
        };
        let message = client.request(1, "tools/list", json!({}));
        let url = format!("{}?access_token={in_query}", gate.url);
        let headers = [("authorization", authorization.as_str())];
        seen.post(what, &client, &url, &headers, &message).await;
    }

    // Services that fail, and repeat what they were told where one likes to repeat it.
    let ada = Mcp::modern(&gate.url, &ada_key);
    for Guarded {
        name,
        service,
        secret,
        ..
    } in &services
    {
        for (what, is_withheld, respond) in echoes(secret) {
            service.script(move |_| respond());
            let message = ada.request(
                1,
                "tools/call",
                json!({"name":format!("{name}_report"),"arguments":{}}),
            );
            let what = format!("{name}, {what}");
            seen.post(&what, &ada, &gate.url, &[], &message).await;
            if is_withheld {
                let said = &seen.0.last().unwrap().1;
                assert!(said.contains("failed a check and was withheld"), "{what}: {said}");
            }
        }
        service.script(orders::usual);
    }

    // Commands of a person, on the same house.
    let arguments = json!({"id":own}).to_string();
    let foreign = json!({"id":others}).to_string();
    let wrong = json!({"id":own,&stray:argument}).to_string();
    for Guarded { name, .. } in &services {
        let tool = format!("{name}_read");
        for command in ["call", "explain"] {
            for arguments in [&arguments, &foreign, &wrong] {
                seen.run(&house, &[command, "--as", "ada", &tool, arguments])
                    .await;
            }
        }
    }
    for arguments in [
        &["check"][..],
        &["check", "--offline", "--json"],
        &["tools", "--json"],
        &["tools", "--as", "ada"],
        &["tools", "--held"],
        &["tools", "--access"],
        &["tools", "--access", "--json"],
        &["keys", "list"],
        &["keys", "list", "--json"],
        &["audit", "tail", "-n", "1000"],
        &["audit", "tail", "--json", "-n", "1000"],
        &["audit", "export"],
        &["audit", "verify"],
    ] {
        seen.run(&house, arguments).await;
    }
    let ledger = house.ledger().await;
    let call = ledger.of_kind("intent")[0]["call"].as_str().unwrap().to_owned();
    seen.run(&house, &["audit", "show", &call]).await;
    let mut pipe = house.stdio();
    for arguments in [json!({"id":own}), json!({"id":others}), json!({&stray:argument})] {
        let message = ada.request(
            1,
            "tools/call",
            json!({"name":"basic_read","arguments":arguments}),
        );
        seen.add("an answer on stdio", pipe.ask(&message).await.to_string());
    }
    let (_, log) = pipe.close().await;
    seen.add("log of the gate on stdio", log);

    crash(&mut seen, &services[0], gate, &ada, json!({"id":own,"text":note})).await;
    let ledger = house.ledger().await;
    assert!(ledger.of_kind("intent").len() > 40 && ledger.of_kind("refusal").len() > 40);
    seen.run(&house, &["audit", "export"]).await;
    seen.files(house.folder());

    // Where a canary may stand, it is found: a person who asks is shown the request that would be sent.
    assert!(
        !seen
            .places(&own, |place| place.starts_with("output of explain"))
            .is_empty()
    );
    for service in &services {
        assert_on_the_wire(service, &secrets);
    }
    for secret in &secrets {
        assert_eq!(seen.places(secret, |_| true), Vec::<&str>::new(), "{secret}");
    }
    let is_kept = |place: &str| {
        let is_a_persons = place.contains(" of call ") || place.contains(" of explain ");
        (place.starts_with("log of") && !is_a_persons)
            || place.starts_with("output of audit")
            || (place.starts_with("file") && !place.ends_with("owners.json"))
    };
    for private in [&own, &others, &unknown, &argument, &stray, &note] {
        assert_eq!(seen.places(private, is_kept), Vec::<&str>::new(), "{private}");
    }
}

type Respond = Box<dyn Fn() -> axum::response::Response + Send + Sync>;

/// Answers that repeat a credential: what it is called, whether the answer is one that would go out, and the answer.
fn echoes(secret: &str) -> Vec<(&'static str, bool, Respond)> {
    fn say(
        status: u16,
        media: &'static str,
        body: impl Into<Vec<u8>>,
    ) -> Box<dyn Fn() -> axum::response::Response + Send + Sync> {
        let body = body.into();
        Box::new(move || {
            axum::response::Response::builder()
                .status(status)
                .header("content-type", media)
                .body(axum::body::Body::from(body.clone()))
                .unwrap()
        })
    }
    const JSON: &str = "application/json";
    let escaped: String = secret
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let (there, again) = (secret.to_owned(), secret.to_owned());
    let elsewhere = url_safe(secret);
    vec![
        (
            "in a field",
            true,
            say(200, JSON, json!({"a":{"b":[secret]}}).to_string()),
        ),
        ("as a name", true, say(200, JSON, json!({secret:1}).to_string())),
        (
            "in escapes",
            true,
            say(200, JSON, format!("{{\"a\":\"{escaped}\"}}")),
        ),
        (
            "in the middle of words",
            true,
            say(
                200,
                JSON,
                json!({"a":format!("you sent {secret}, did you?")}).to_string(),
            ),
        ),
        (
            "as a text",
            true,
            say(200, "text/plain", format!("authorization: {secret}\n")),
        ),
        (
            "in Base64",
            true,
            say(200, JSON, json!({"a":STANDARD.encode(secret)}).to_string()),
        ),
        (
            "in the Base64 of more",
            true,
            say(
                200,
                JSON,
                json!({"a":STANDARD.encode(format!("a: {secret}!!"))}).to_string(),
            ),
        ),
        (
            "in the other Base64",
            true,
            say(
                200,
                JSON,
                json!({"a":URL_SAFE_NO_PAD.encode(format!("ab{secret}"))}).to_string(),
            ),
        ),
        (
            "in hexadecimal",
            true,
            say(200, JSON, json!({"a":hex}).to_string()),
        ),
        ("percent-encoded", true, say(200, "text/plain", percent)),
        (
            "in a problem",
            true,
            say(
                400,
                "application/problem+json",
                json!({"detail":format!("bad key {secret}")}).to_string(),
            ),
        ),
        (
            "in a problem that is cut off in the middle of it",
            true,
            say(
                400,
                JSON,
                json!({"message":format!("{}{secret}", "x".repeat(280))}).to_string(),
            ),
        ),
        (
            "in a problem, with hidden characters in it",
            true,
            say(
                400,
                JSON,
                json!({"message":secret.chars().flat_map(|c| [c, '\u{200b}']).collect::<String>()})
                    .to_string(),
            ),
        ),
        (
            "in a stack trace",
            false,
            say(500, JSON, json!({"stack":secret}).to_string()),
        ),
        ("on a page", false, say(502, "text/html", format!("<p>{secret}"))),
        (
            "in a header",
            false,
            Box::new(move || {
                let mut response = answer(200, &json!({}));
                response.headers_mut().insert("x-debug", there.parse().unwrap());
                response
            }),
        ),
        (
            "in a redirect elsewhere",
            true,
            Box::new(move || {
                axum::response::Response::builder()
                    .status(302)
                    .header(
                        "location",
                        format!("https://elsewhere.example/{elsewhere}?k={elsewhere}"),
                    )
                    .body(axum::body::Body::from(again.clone()))
                    .unwrap()
            }),
        ),
    ]
}

/// The part of a canary that can stand in a URL as it is.
fn url_safe(secret: &str) -> String {
    secret
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect()
}

/// Kills the gate while a call is under way.
async fn crash(seen: &mut Seen, one: &Guarded, gate: Gate, ada: &Mcp, arguments: Value) {
    one.service.hold();
    let before = one.service.count();
    let call = {
        let ada = ada.clone();
        let name = format!("{}_note", one.name);
        // It ends without an answer; that is what it is for.
        tokio::spawn(async move {
            let message = ada.request(1, "tools/call", json!({"name":name,"arguments":arguments}));
            let headers = ada.headers(&message);
            let mut socket = e2e::socket::Socket::open(
                ada.url
                    .strip_prefix("http://")
                    .and_then(|rest| rest.split('/').next())
                    .unwrap(),
            )
            .await;
            let body = message.to_string();
            let mut head = format!(
                "POST /mcp HTTP/1.1\r\nhost: {}\r\n",
                ada.url.split('/').nth(2).unwrap()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            socket
                .write(format!("{head}content-length: {}\r\n\r\n{body}", body.len()))
                .await;
            socket.end().await
        })
    };
    one.service.until(before + 1).await;
    let log = gate.log();
    gate.kill().await;
    one.service.let_go();
    seen.add("answer of a gate that was killed", call.await.unwrap());
    seen.add("log of the gate", log);
}

/// What arrived at a service has its credential in its one place, and no other secret at all.
fn assert_on_the_wire(guarded: &Guarded, secrets: &[String]) {
    let arrived = guarded.service.arrived();
    assert!(!arrived.is_empty());
    for request in arrived {
        let mut whole = format!("{} {}\n", request.method, request.target);
        for (name, value) in &request.headers {
            whole.push_str(&format!(
                "{name}: {}\n",
                String::from_utf8_lossy(value.as_bytes())
            ));
        }
        whole.push_str(&String::from_utf8_lossy(&request.body));
        // `check` asks whether somebody is there, and needs nobody's credential for that.
        let is_probe = (request.method.as_str(), request.target.as_str()) == ("HEAD", "/");
        let times = usize::from(!is_probe);
        assert_eq!(whole.matches(&guarded.on_the_wire).count(), times, "{whole}");
        let rest = whole.replace(&guarded.on_the_wire, "");
        let mut rest_of = Seen::default();
        rest_of.add("request", rest);
        for secret in secrets {
            assert!(
                rest_of.places(secret, |_| true).is_empty(),
                "{}: {secret} in {whole}",
                guarded.name
            );
        }
    }
}

#[tokio::test]
async fn the_password_of_a_source_is_in_no_error_of_it() {
    let password = fresh("database");
    let service = Service::start(orders::usual).await;
    let mut urls = vec![
        (
            "nobody listens",
            format!("postgres://reader:{password}@127.0.0.1:1/directory"),
        ),
        (
            "a parameter that nobody knows",
            format!("postgres://reader:{password}@127.0.0.1:1/directory?sslmode=perhaps"),
        ),
        (
            "no URL",
            format!("postgres://reader:{password}@127.0.0.1:x/directory"),
        ),
        (
            "a password as a parameter",
            format!("postgres://127.0.0.1:1/directory?password={password}"),
        ),
        ("a file", format!("sqlite:/nowhere/{password}.db")),
    ];
    if let Some(postgres) = Postgres::shared().await {
        let database = postgres
            .database("create table thing (id text primary key, tenant text)")
            .await;
        let name = format!("reader_{}", uuid::Uuid::new_v4().simple());
        postgres
            .run(
                &postgres.url(),
                &format!("create role {name} login password 'another'"),
            )
            .await;
        urls.push((
            "another password",
            postgres.url_of(&name, Some(&password), &database),
        ));
        urls.push((
            "no such role",
            postgres.url_of("nobody", Some(&password), &database),
        ));
        let right = format!("right_{}", uuid::Uuid::new_v4().simple());
        postgres
            .run(
                &postgres.url(),
                &format!("create role {right} login password '{password}'"),
            )
            .await;
        // It gets in, and may not read the table.
        urls.push((
            "no right to the table",
            postgres.url_of(&right, Some(&password), &database),
        ));
    }
    for (what, url) in urls {
        let house = orders::house(&service.url())
            .with_change(
                "tollhouse.toml",
                "[source.owners]\nfile = \"owners.json\"",
                "[source.owners]\nsql = \"env:OWNERS_URL\"",
            )
            .with_change(
                "tollhouse.toml",
                "owner = { source = \"owners\" }",
                "owner = { source = \"owners\", query = \"select tenant from thing where id = $1\" }",
            )
            .with_variable("OWNERS_URL", &url)
            .with_variable("TOLLHOUSE_LOG", "trace");
        let mut seen = Seen::default();
        for arguments in [
            &["check"][..],
            &["check", "--offline", "--json"],
            &["call", "--as", "ada", "orders_read", "{\"id\":\"o-1\"}"],
            &["explain", "--as", "ada", "orders_read", "{\"id\":\"o-1\"}"],
            &["serve", "--stdio"],
        ] {
            seen.run(&house, arguments).await;
        }
        seen.files(house.folder());
        // A path is no secret; a fault about a file has to say which.
        if what != "a file" {
            assert_eq!(seen.places(&password, |_| true), Vec::<&str>::new(), "{what}");
        }
    }
    assert!(
        service
            .arrived()
            .iter()
            .all(|request| !request.target.starts_with("/orders"))
    );
}
