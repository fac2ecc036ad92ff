//! What a configuration means: every setting of a complete file, the defaults of a short one, and what is left out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{
    Bind, ClientMethod, ConfigFault, CredentialSetting, CredentialSettings, Durability, FactKind,
    KeySetSetting, Loaded, LogFormat, LogLevel, OwnerSettings, PaperWorld, Reach, Redirects, ResourceBy,
    Scope, Settings, Sharing, SignatureAlgorithm, SourceSettings, StoreSetting, TokenEndpoint, Transport,
    load, template,
};
use model::{Class, Limits};
use secrecy::ExposeSecret;

use crate::world::{CANARY, world};

const COMPLETE: &str = include_str!("complete.toml");
const SHORT: &str = "[upstream.api]\nopenapi = \"billing.yaml\"\ndestination = \"https://api.example.com\"\n";

fn try_load(world: &PaperWorld, path: &str) -> Result<Loaded, Vec<ConfigFault>> {
    load(Path::new(path), world)
}

#[track_caller]
fn settings(text: &str) -> Settings {
    let world = world().with_file("tollhouse.toml", text);
    try_load(&world, "tollhouse.toml")
        .unwrap_or_else(|faults| panic!("{faults:#?}"))
        .settings
}

#[test]
fn servers_mean_what_they_say_and_are_no_services() {
    let complete = settings(COMPLETE);
    let [files, tracker] = complete.servers.as_slice() else {
        panic!("{:?}", complete.servers);
    };
    assert!(
        complete
            .upstreams
            .iter()
            .all(|service| service.name != files.name)
    );
    assert_eq!(
        (
            files.name.as_str(),
            files.revision.as_deref(),
            files.sharing,
            files.timeout
        ),
        ("files", None, Sharing::PerCaller, Some(Duration::from_secs(5)))
    );
    let Reach::Command(command) = &files.reach else {
        panic!("{:?}", files.reach);
    };
    assert_eq!(command.command[0], "npx");
    assert_eq!(command.command.len(), 4);
    let env: Vec<_> = command
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose_secret()))
        .collect();
    let key = format!("{CANARY}-key");
    assert_eq!(env, [("FILES_TOKEN", key.as_str()), ("NODE_ENV", "production")]);
    assert_eq!(command.secrets.iter().collect::<Vec<_>>(), ["FILES_TOKEN"]);
    assert_eq!(command.pass_env, ["NODE_EXTRA_CA_CERTS"]);
    assert_eq!(command.cwd, Path::new("work"));
    let sandbox = command.sandbox.as_ref().unwrap();
    assert_eq!(sandbox.read, [Path::new("/srv/docs")]);
    assert_eq!(sandbox.write, [Path::new("out")]);
    assert!(!sandbox.network && !sandbox.allow_degraded);
    assert_eq!(
        (command.start_timeout, command.stop_timeout, command.idle_stop),
        (
            Duration::from_secs(120),
            Duration::from_secs(10),
            Duration::from_secs(3_600)
        )
    );
    assert_eq!(
        (command.restart.wait, command.restart.wait_max),
        (Duration::from_secs(5), Duration::from_secs(300))
    );
    assert_eq!((command.children_max, command.children_per_caller_max), (8, 2));
    let tool = &files.tools[0];
    assert_eq!(
        (
            tool.name.as_str(),
            tool.operation.as_str(),
            tool.key.as_str(),
            tool.class
        ),
        ("files_read", "read_file", "upstream.files.tool.read", Class::Read)
    );
    let offered = |settings: &[config::ToolSettings]| -> Vec<(String, String, String, Class)> {
        let one = |one: &config::ToolSettings| {
            (
                one.name.to_string(),
                one.operation.clone(),
                one.key.clone(),
                one.class,
            )
        };
        settings.iter().map(one).collect()
    };
    let one = |name: &str, operation: &str, key: &str, class| {
        vec![(name.to_owned(), operation.to_owned(), key.to_owned(), class)]
    };
    assert_eq!(
        offered(&files.prompts),
        one(
            "files_summary",
            "summarise",
            "upstream.files.prompt.summary",
            Class::SensitiveRead
        )
    );
    assert_eq!(
        offered(&files.resources),
        one(
            "files_start",
            "file:///srv/docs/start.md",
            "upstream.files.resource.start",
            Class::Read
        )
    );
    assert_eq!(
        offered(&files.templates),
        one(
            "files_page",
            "file:///srv/docs/pages/{name}",
            "upstream.files.resource.page",
            Class::Read
        )
    );

    let Reach::Url(url) = &tracker.reach else {
        panic!("{:?}", tracker.reach);
    };
    assert_eq!(
        (tracker.revision.as_deref(), tracker.sharing),
        (Some("2025-06-18"), Sharing::Shared)
    );
    assert_eq!(url.url, "https://tracker.example.com/mcp");
    assert_eq!(url.transport, Transport::Streamable);
    assert_eq!(url.headers, [("X-Env".to_owned(), "prod".to_owned())]);
    assert!(matches!(
        url.credential,
        CredentialSettings::Every(CredentialSetting::Bearer(_))
    ));
    assert_eq!((url.network.allow.len(), url.tls.ca.is_some()), (1, true));
    assert_eq!(tracker.tools[0].operation, "search");
    assert_eq!(
        tracker.tools[0].description.as_deref(),
        Some("Tickets of one project.")
    );
    assert_eq!(
        complete
            .stdio
            .as_ref()
            .unwrap()
            .upstream
            .as_ref()
            .unwrap()
            .as_str(),
        "files"
    );
    let view = &complete.views[0];
    let shown: Vec<_> = view.tools.iter().map(|tool| tool.as_str()).collect();
    assert_eq!(
        (view.name.as_str(), shown),
        ("support", vec!["files_read", "tracker_search"])
    );

    // A file may have nothing but servers, and what is not written has its default.
    let short = settings(
        "[upstream.files]\ncommand = [\"./server\"]\n[upstream.far]\nurl = \"https://a.example/mcp?team=b\"\n",
    );
    assert!(short.upstreams.is_empty());
    let (Reach::Command(command), Reach::Url(url)) = (&short.servers[0].reach, &short.servers[1].reach)
    else {
        panic!("{:?}", short.servers);
    };
    assert!(command.env.is_empty() && command.pass_env.is_empty() && command.sandbox.is_none());
    // The folder of a file without one is a folder that can be gone to.
    assert_eq!(
        (command.cwd.as_path(), command.folder.as_path()),
        (Path::new("."), Path::new("."))
    );
    assert_eq!(
        (short.servers[0].sharing, url.transport),
        (Sharing::PerSession, Transport::Auto)
    );
    assert_eq!(url.url, "https://a.example/mcp?team=b");
    let few = settings("[upstream.files]\ncommand = [\"x\"]\nchildren_max = 3\n");
    assert!(matches!(&few.servers[0].reach, Reach::Command(command) if command.children_per_caller_max == 3));
}

#[test]
fn a_complete_file_means_what_it_says() {
    let settings = settings(COMPLETE);
    assert_eq!(settings.listen.to_string(), "0.0.0.0:7300");
    assert_eq!(settings.resource, "https://mcp.example.com/mcp");
    assert!(
        matches!(&settings.store, StoreSetting::Postgres(url) if url.expose_secret() == "postgres://tollhouse@db.internal/tollhouse")
    );
    assert_eq!(settings.store_bytes_max, Some(1 << 30));
    assert_eq!(settings.allowed_hosts, ["mcp.example.com:8443"]);
    assert_eq!(settings.allowed_origins, ["https://app.example.com"]);
    assert_eq!(
        (settings.log.level, settings.log.format),
        (LogLevel::Debug, LogFormat::Json)
    );
    assert_eq!(settings.stdio.as_ref().unwrap().caller.as_str(), "ada");
    assert_eq!(
        (
            settings.ledger.read,
            settings.ledger.write,
            settings.ledger.checkpoint_every
        ),
        (Durability::Disk, Durability::Process, 100)
    );
    assert_eq!(settings.limits.connections_max, 100);
    assert_eq!(settings.limits.headers_bytes_max, 16 << 10);
    assert_eq!(settings.limits.call_timeout, Duration::from_secs(20));
    assert_eq!(settings.limits.calls_max, Limits::default().calls_max);

    let ada = &settings.callers["ada"];
    assert_eq!(
        (
            ada.subject.as_str(),
            ada.tenant.as_ref().unwrap().as_str(),
            ada.client.as_ref().unwrap().as_str()
        ),
        ("ada@example.com", "north", "ide")
    );
    assert_eq!(
        ada.roles.iter().map(model::Role::as_str).collect::<Vec<_>>(),
        ["auditor", "member"]
    );
    assert_eq!(
        serde_json::to_string(&ada.claims).unwrap(),
        r#"{"accounts":["a1","a2"],"region":"eu"}"#
    );
    let bob = &settings.callers["bob"];
    assert_eq!(
        (
            bob.subject.as_str(),
            bob.tenant.is_none(),
            bob.roles.len(),
            bob.claims.len()
        ),
        ("bob", true, 0, 0)
    );
}

#[test]
fn issuers_mean_what_they_say_and_an_unwritten_audience_is_the_resource() {
    let identity = settings(COMPLETE).identity;
    assert!(identity.api_keys);
    let [corp, local] = &identity.issuers[..] else {
        panic!()
    };
    assert_eq!(
        (corp.name.as_str(), corp.issuer.as_str()),
        ("corp", "https://idp.example.com")
    );
    assert_eq!(corp.audience, ["https://mcp.example.com/mcp", "other"]);
    assert_eq!(
        corp.algorithms,
        [SignatureAlgorithm::Es256, SignatureAlgorithm::EdDsa]
    );
    assert!(
        matches!(&corp.key_set, KeySetSetting::Url(url) if url.as_str() == "https://idp.example.com/jwks.json")
    );
    assert_eq!(
        (corp.key_set_max_age, corp.leeway),
        (Duration::from_secs(3_600), Duration::from_secs(10))
    );
    assert_eq!(corp.scopes_required, ["invoices"]);
    let claims = &corp.claims;
    assert_eq!(
        (
            claims.subject.as_str(),
            claims.tenant.as_deref(),
            claims.roles.as_deref(),
            claims.client.as_deref()
        ),
        ("sub", Some("org_id"), Some("groups"), Some("azp"))
    );
    assert_eq!(claims.extra, ["accounts"]);
    assert_eq!(
        corp.network
            .allow
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["10.0.0.0/8", "fd00::1/128"]
    );
    assert!(corp.tls.ca.as_ref().unwrap().bytes.starts_with(b"-----BEGIN"));

    assert_eq!(local.audience, ["https://mcp.example.com/mcp"]);
    assert!(
        matches!(&local.key_set, KeySetSetting::File(file) if file.bytes == b"{\"keys\":[]}" && file.path == "keys.json")
    );
    assert_eq!(
        (
            local.leeway,
            local.claims.subject.as_str(),
            local.claims.tenant.is_none()
        ),
        (Duration::from_secs(30), "sub", true)
    );
    assert!(local.network.allow.is_empty() && local.tls.ca.is_none());
}

#[test]
fn upstreams_and_tools_mean_what_they_say_in_the_order_of_the_file() {
    let settings = settings(COMPLETE);
    let names: Vec<&str> = settings
        .upstreams
        .iter()
        .map(|upstream| upstream.name.as_str())
        .collect();
    assert_eq!(names, ["billing", "archive", "crm", "old-crm", "desk"]);
    let billing = &settings.upstreams[0];
    assert_eq!(
        (billing.openapi.path.as_str(), billing.openapi.bytes.as_slice()),
        ("billing.yaml", b"openapi: 3.1.0".as_slice())
    );
    assert_eq!(
        (billing.destination.as_str(), billing.redirects, billing.timeout),
        (
            "https://billing.internal:8443/api",
            Redirects::SameOrigin,
            Some(Duration::from_secs(4))
        )
    );
    assert_eq!(billing.headers, [("X-Env".to_owned(), "prod".to_owned())]);
    let [status, list, pay] = &billing.tools[..] else {
        panic!()
    };
    assert_eq!(
        (status.name.as_str(), status.key.as_str()),
        (
            "billing_getInvoiceStatus",
            "upstream.billing.tool.getInvoiceStatus"
        )
    );
    assert_eq!(
        (status.operation.as_str(), status.title.as_deref(), status.class),
        ("getInvoice", Some("Invoice status"), Class::Read)
    );
    assert_eq!(
        status
            .resource
            .as_ref()
            .map(|resource| (resource.kind.as_str(), resource.by.clone())),
        Some(("Invoice", ResourceBy::Argument("invoiceId".to_owned())))
    );
    assert!(
        matches!(&status.owner, Some(OwnerSettings::Sql { source, bind, .. }) if source.as_str() == "directory" && *bind == [Bind::ResourceId])
    );
    let fact = &status.facts[0];
    assert_eq!(
        (fact.name.as_str(), fact.kind, fact.bind.as_slice()),
        (
            "member",
            FactKind::Truth,
            [Bind::PrincipalTenant, Bind::PrincipalSubject].as_slice()
        )
    );
    let returns: Vec<_> = status
        .returns
        .iter()
        .flatten()
        .map(|(name, path)| (name.as_str(), path.as_str()))
        .collect();
    assert_eq!(returns, [("status", "$.status"), ("due", "$.due_date")]);
    assert_eq!(
        (
            status.timeout,
            status
                .retry
                .as_ref()
                .map(|retry| (retry.attempts, retry.on.clone()))
        ),
        (Some(Duration::from_secs(5)), Some((3, vec![429, 503])))
    );

    assert_eq!(list.class, Class::SensitiveRead);
    assert_eq!(
        list.resource.as_ref().map(|resource| resource.by.clone()),
        Some(ResourceBy::Scope(Scope::Tenant))
    );
    assert_eq!(
        (
            list.scope_argument.as_deref(),
            list.rows
                .as_ref()
                .map(|rows| (rows.items.as_str(), rows.owner.as_str()))
        ),
        (Some("tenant"), Some(("$.invoices", "$.tenant")))
    );
    assert!(list.returns.is_none() && list.retry.is_none() && list.facts.is_empty());
    // What it does not say itself, its upstream says.
    assert_eq!(list.timeout, Some(Duration::from_secs(4)));

    assert_eq!(
        pay.owner,
        Some(OwnerSettings::Claims {
            claim: "accounts".to_owned()
        })
    );
    let waiver = pay.consent.as_ref().unwrap();
    assert_eq!(
        (waiver.waived_by.as_str(), waiver.until.to_string()),
        ("Grace Hopper", "2027-01-31".to_owned())
    );
    assert!(waiver.holds("2027-01-31T23:59:59Z".parse().unwrap()));
    assert!(!waiver.holds("2027-02-01T00:00:00Z".parse().unwrap()));
    assert!(
        matches!(&settings.upstreams[1].tools[0].owner, Some(OwnerSettings::File { source }) if source.as_str() == "owners")
    );
}

#[test]
fn credentials_are_resolved_and_a_line_break_at_the_end_of_a_file_is_no_part_of_one() {
    let settings = settings(COMPLETE);
    let credentials: Vec<&CredentialSetting> = settings
        .upstreams
        .iter()
        .filter_map(|upstream| match &upstream.credentials {
            CredentialSettings::Every(credential) => Some(credential),
            CredentialSettings::None | CredentialSettings::Schemes(_) => None,
        })
        .collect();
    let [
        CredentialSetting::Bearer(token),
        CredentialSetting::Basic { username, password },
        CredentialSetting::KeyHeader { header, value },
        CredentialSetting::KeyQuery {
            parameter,
            value: query,
        },
    ] = credentials[..]
    else {
        panic!("{credentials:?}")
    };
    assert_eq!(token.expose_secret(), format!("{CANARY}-token"));
    assert_eq!(
        (username.as_str(), password.expose_secret()),
        ("tollhouse", format!("{CANARY}-password").as_str())
    );
    assert_eq!(
        (header.as_str(), value.expose_secret()),
        ("X-API-Key", format!("{CANARY}-key").as_str())
    );
    assert_eq!(
        (parameter.as_str(), query.expose_secret()),
        ("key", format!("{CANARY}-key").as_str())
    );
    assert_eq!(settings.upstreams[1].destination, "https://archive.example.com");
}

#[test]
fn credentials_stand_under_the_schemes_of_the_document() {
    let settings = settings(COMPLETE);
    let CredentialSettings::Schemes(schemes) = &settings.upstreams.last().unwrap().credentials else {
        panic!("{settings:?}")
    };
    let names: Vec<&str> = schemes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["token", "sign-in", "certificate", "session", "mesh"]);
    let [
        CredentialSetting::OAuth2(token),
        CredentialSetting::OAuth2(sign_in),
        CredentialSetting::MutualTls { certificate, key },
        CredentialSetting::KeyCookie { cookie, .. },
        CredentialSetting::Outside { by },
    ] = schemes.iter().map(|(_, setting)| setting).collect::<Vec<_>>()[..]
    else {
        panic!("{schemes:?}")
    };
    assert!(
        matches!(&token.endpoint, TokenEndpoint::Url(url) if url.as_str() == "https://idp.example.com/token")
    );
    assert_eq!((token.method, token.timeout.as_secs()), (ClientMethod::Post, 2));
    assert_eq!(token.scopes.as_deref(), Some(&["desk:read".to_owned()][..]));
    assert_eq!(
        token.parameters,
        [("audience".to_owned(), "https://desk.example.com".to_owned())]
    );
    assert_eq!(token.client_secret.expose_secret(), format!("{CANARY}-key"));
    assert!(matches!(&sign_in.endpoint, TokenEndpoint::Discovery(_)));
    assert_eq!(
        (sign_in.method, &sign_in.scopes, sign_in.timeout.as_secs()),
        (ClientMethod::Basic, &None, 5)
    );
    assert!(certificate.path.ends_with("ca.pem") && key.expose_secret().contains(CANARY));
    assert_eq!(
        (cookie.as_str(), by.as_str()),
        ("session", "the service mesh adds a certificate")
    );
}

#[test]
fn a_file_is_taken_with_either_line_break_at_its_end_and_no_more_than_one() {
    for (content, fits) in [
        ("abc", true),
        ("abc\n", true),
        ("abc\r\n", true),
        ("abc\n\n", false),
        ("abc\r", false),
        (" abc", false),
        ("abc \n", false),
        ("a\tb", false),
        ("", false),
        ("\n", false),
        ("\u{feff}abc", false),
    ] {
        let text = format!("{SHORT}credential = {{ bearer = \"file:secret\" }}\n");
        let world = world()
            .with_file("tollhouse.toml", text)
            .with_file("secret", content);
        let loaded = try_load(&world, "tollhouse.toml");
        assert_eq!(loaded.is_ok(), fits, "{content:?}");
        if let Ok(Loaded { settings, .. }) = loaded {
            assert!(
                matches!(&settings.upstreams[0].credentials, CredentialSettings::Every(CredentialSetting::Bearer(token)) if token.expose_secret() == "abc")
            );
        }
    }
}

#[test]
fn what_a_variable_holds_is_a_string_and_never_configuration() {
    let text = "[upstream.api]\nopenapi = \"env:DOCUMENT\"\ndestination = \"https://api.example.com\"\ncredential = { bearer = \"env:TOKEN\" }\n";
    let load_with = |document: &str, token: &str| {
        let world = world()
            .with_file("tollhouse.toml", text)
            .with_variable("DOCUMENT", document)
            .with_variable("TOKEN", token);
        try_load(&world, "tollhouse.toml")
    };
    // Neither a quotation mark nor a second reference means anything in a value.
    let loaded = load_with("billing.yaml", "a\"}[limits]env:BILLING_TOKEN${HOME}").unwrap();
    assert!(
        matches!(&loaded.settings.upstreams[0].credentials, CredentialSettings::Every(CredentialSetting::Bearer(token)) if token.expose_secret() == "a\"}[limits]env:BILLING_TOKEN${HOME}")
    );
    let faults = load_with("env:BILLING_TOKEN", "t").unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "tollhouse.toml:2:11: upstream.api.openapi: `env:BILLING_TOKEN` is not there; relative paths begin in the folder of this file"
    );
    assert!(load_with("billing.yaml\"\nlisten = \"0.0.0.0:1", "t").is_err());
}

#[test]
fn a_short_file_has_every_default() {
    let settings = settings(SHORT);
    assert_eq!(settings.listen.to_string(), "127.0.0.1:7300");
    assert_eq!(
        (settings.public_url.as_str(), settings.resource.as_str()),
        ("http://127.0.0.1:7300/", "http://127.0.0.1:7300/mcp")
    );
    assert!(matches!(&settings.store, StoreSetting::Sqlite(path) if path == Path::new("tollhouse.db")));
    assert_eq!(settings.store.url().expose_secret(), "sqlite:tollhouse.db");
    assert_eq!((settings.store_bytes_max, settings.stdio), (None, None));
    assert_eq!(
        (settings.log.level, settings.log.format),
        (LogLevel::Info, LogFormat::Text)
    );
    assert_eq!(
        (
            settings.ledger.read,
            settings.ledger.write,
            settings.ledger.checkpoint_every
        ),
        (Durability::Process, Durability::Disk, 1_000)
    );
    assert!(
        settings.identity.api_keys
            && settings.identity.issuers.is_empty()
            && settings.callers.is_empty()
            && settings.sources.is_empty()
    );
    assert!(settings.allowed_hosts.is_empty() && settings.allowed_origins.is_empty());
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(
        (settings.path.as_path(), settings.folder.as_path()),
        (Path::new("tollhouse.toml"), Path::new("."))
    );
    let upstream = &settings.upstreams[0];
    assert_eq!(
        (
            upstream.redirects,
            upstream.timeout,
            matches!(upstream.credentials, CredentialSettings::None),
            upstream.tools.len()
        ),
        (Redirects::None, None, true, 0)
    );
}

#[test]
fn a_query_without_bound_values_is_bound_to_the_id_of_the_thing() {
    let text = format!(
        "{SHORT}[upstream.api.tool.get]\noperation = \"x\"\nclass = \"read\"\nresource = {{ type = \"Invoice\", id = \"$.invoiceId\" }}\n\
         owner = {{ source = \"directory\", query = \"select tenant from invoice where id = $1\" }}\n[source.directory]\nsql = \"postgres://directory\"\n"
    );
    let settings = settings(&text);
    assert!(
        matches!(&settings.upstreams[0].tools[0].owner, Some(OwnerSettings::Sql { bind, .. }) if *bind == [Bind::ResourceId])
    );
}

#[test]
fn rules_are_read_in_the_order_of_their_names_and_other_files_are_not() {
    let paths: Vec<String> = settings(SHORT)
        .policy_files
        .into_iter()
        .map(|file| file.path)
        .collect();
    let expected = [
        Path::new("policy").join("a.cedar"),
        Path::new("policy").join("b.cedar"),
    ];
    assert_eq!(paths, expected.map(|path| path.display().to_string()));
}

#[test]
fn owners_of_a_file_are_known_by_type_and_id() {
    let settings = settings(COMPLETE);
    let SourceSettings::File(owners) = &settings.sources["owners"] else {
        panic!()
    };
    let owner = |kind: &str, id: &str| {
        owners
            .owner(&model::ResourceType::parse(kind).unwrap(), id)
            .map(model::TenantId::as_str)
    };
    assert_eq!(
        (owner("Invoice", "inv-1"), owner("Invoice", "inv-2")),
        (Some("north"), Some("south"))
    );
    assert_eq!(
        (owner("Invoice", "inv-3"), owner("Member", "inv-1")),
        (None, None)
    );
    assert_eq!((owners.len(), owners.is_empty()), (2, false));
    assert!(
        matches!(&settings.sources["directory"], SourceSettings::Sql(StoreSetting::Sqlite(path)) if path == Path::new("directory.db"))
    );
}

#[test]
fn relative_paths_begin_in_the_folder_of_the_file_and_absolute_ones_do_not() {
    let text = "store = \"sqlite:/var/lib/tollhouse.db\"\n[upstream.api]\nopenapi = \"api/a.yaml\"\ndestination = \"https://api.example.com\"\ntls = { ca = \"/etc/ca.pem\" }\n[source.d]\nsql = \"sqlite:d.db\"\n";
    let world = PaperWorld::default()
        .with_file("/etc/tollhouse/tollhouse.toml", text)
        .with_file("/etc/tollhouse/api/a.yaml", "openapi: 3.1.0")
        .with_file("/etc/tollhouse/policy/a.cedar", "")
        .with_file("/etc/ca.pem", "-----BEGIN CERTIFICATE-----");
    let settings = try_load(&world, "/etc/tollhouse/tollhouse.toml")
        .unwrap_or_else(|faults| panic!("{faults:#?}"))
        .settings;
    assert_eq!(settings.folder, PathBuf::from("/etc/tollhouse"));
    assert_eq!(settings.upstreams[0].openapi.path, "/etc/tollhouse/api/a.yaml");
    assert!(
        matches!(&settings.store, StoreSetting::Sqlite(path) if path == Path::new("/var/lib/tollhouse.db"))
    );
    assert!(
        matches!(&settings.sources["d"], SourceSettings::Sql(StoreSetting::Sqlite(path)) if path == Path::new("/etc/tollhouse/d.db"))
    );
}

#[test]
fn a_key_has_a_place_and_an_unwritten_one_that_of_the_table_around_it() {
    let settings = settings(COMPLETE);
    let line_of = |needle: &str| {
        COMPLETE
            .lines()
            .position(|line| line.starts_with(needle))
            .unwrap()
            + 1
    };
    for (key, needle, column) in [
        ("listen", "listen", 1),
        ("upstream.billing", "[upstream.billing]", 11),
        (
            "upstream.billing.tool.getInvoiceStatus",
            "[upstream.billing.tool.getInvoiceStatus]",
            24,
        ),
        (
            "upstream.billing.tool.getInvoiceStatus.operation",
            "operation = \"getInvoice\"",
            1,
        ),
        (
            "upstream.billing.tool.listInvoices.timeout",
            "[upstream.billing.tool.listInvoices]",
            24,
        ),
        (
            "upstream.crm.tool.ping.owner.query",
            "[upstream.crm.tool.ping]",
            20,
        ),
        ("identity.issuer.corp.claims.roles", "claims = { subject", 48),
    ] {
        let place = settings.place(key).unwrap();
        assert_eq!(
            (place.file.as_str(), place.line, place.column),
            ("tollhouse.toml", line_of(needle), column),
            "{key}"
        );
    }
    assert_eq!(settings.place("nonsense"), None);
    assert_eq!(settings.place(""), None);
    assert_eq!(
        settings.place("listen").unwrap().to_string(),
        "tollhouse.toml:2:1"
    );
}

#[test]
fn the_address_that_was_bound_moves_what_follows_it_and_nothing_that_was_written() {
    let issuer = "[identity.issuer.a]\nissuer = \"https://a.example\"\nkey_set = \"file:keys.json\"\n[identity.issuer.b]\nissuer = \"https://b.example\"\nkey_set = \"file:keys.json\"\naudience = \"b\"\n";
    let bound = "127.0.0.1:43210".parse().unwrap();
    let mut follows = settings(&format!("listen = \"127.0.0.1:0\"\n{SHORT}{issuer}"));
    follows.listening_on(bound);
    assert_eq!(
        (
            follows.listen,
            follows.resource.as_str(),
            follows.public_url.as_str()
        ),
        (bound, "http://127.0.0.1:43210/mcp", "http://127.0.0.1:43210/")
    );
    assert_eq!(
        follows.identity.issuers[0].audience,
        ["http://127.0.0.1:43210/mcp"]
    );
    assert_eq!(follows.identity.issuers[1].audience, ["b"]);

    let mut written = settings(&format!(
        "listen = \"127.0.0.1:0\"\npublic_url = \"https://mcp.example.com/base\"\n{SHORT}{issuer}"
    ));
    written.listening_on(bound);
    assert_eq!(
        (written.listen, written.resource.as_str()),
        (bound, "https://mcp.example.com/base/mcp")
    );
    assert_eq!(
        written.identity.issuers[0].audience,
        ["https://mcp.example.com/base/mcp"]
    );
}

#[test]
fn another_text_has_another_digest_and_the_same_text_the_same() {
    assert_eq!(settings(SHORT).digest, settings(SHORT).digest);
    assert_ne!(settings(SHORT).digest, settings(&format!("{SHORT}\n")).digest);
}

#[test]
fn the_template_loads_once_its_document_and_its_rules_are_there() {
    let world = PaperWorld::default()
        .with_file("tollhouse.toml", template())
        .with_file("openapi.yaml", "openapi: 3.1.0")
        .with_file("policy/rules.cedar", "");
    let loaded = try_load(&world, "tollhouse.toml").unwrap_or_else(|faults| panic!("{faults:#?}"));
    let warnings: Vec<String> = loaded
        .warnings
        .iter()
        .map(|warning| warning.problem.clone())
        .collect();
    assert_eq!(warnings, ["this upstream has no tools"]);
}

#[test]
fn the_template_loads_with_everything_that_it_comments_out() {
    // A line `# key = value` or `# [table]` is a suggestion; other comments are prose.
    let suggestion = |line: &str| line.starts_with("# [") || (line.starts_with("# ") && line.contains(" = "));
    let text: String = template()
        .lines()
        .map(|line| {
            if suggestion(line) {
                format!("{}\n", &line[2..])
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    let world = PaperWorld::default()
        .with_file("tollhouse.toml", text)
        .with_file("openapi.yaml", "openapi: 3.1.0")
        .with_file("policy/rules.cedar", "")
        .with_variable("API_TOKEN", "t")
        .with_variable("DIRECTORY_URL", "postgres://u:p@directory/d");
    let loaded = try_load(&world, "tollhouse.toml").unwrap_or_else(|faults| panic!("{faults:#?}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.settings.upstreams[0].tools.len(), 1);
}
