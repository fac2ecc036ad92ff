//! Budgets of the schemas of an upstream's tools, and of their list: the same for every command, for each tool alone, and a
//! list that is too long is told with what would make it fit.

use e2e::house::House;
use e2e::said::run;
use serde_json::{Value, json};

/// Two operations whose body and answer are deep and optional.
fn document() -> String {
    let mut text = "openapi: 3.1.0\ninfo: {title: Deep, version: '1'}\npaths:\n".to_owned();
    for name in ["first", "second"] {
        text.push_str(&format!(
            "  /{name}: {{post: {{operationId: {name}, requestBody: {{content: {{application/json: {{schema: {{$ref: '#/components/schemas/L0'}}}}}}}}, responses: {{'200': {{description: d, content: {{application/json: {{schema: {{$ref: '#/components/schemas/L0'}}}}}}}}}}}}}}\n"
        ));
    }
    text.push_str("components:\n  schemas:\n    L30: {type: string}\n");
    for level in 0..30 {
        text.push_str(&format!(
            "    L{level}: {{type: object, properties: {{s: {{type: string, description: {}}}, next: {{$ref: '#/components/schemas/L{}'}}}}}}\n",
            "x".repeat(300),
            level + 1
        ));
    }
    text
}

fn house(limits: &str, budgets: &str, tools: &[&str]) -> House {
    let mut text = format!(
        "[stdio]\ncaller = \"ada\"\n\n[caller.ada]\ntenant = \"north\"\n\n{limits}\n[upstream.deep]\nopenapi = \"deep.yaml\"\ndestination = \"http://127.0.0.1:9\"\nnetwork = {{ allow = [\"127.0.0.1/32\"] }}\n{budgets}\n"
    );
    for tool in tools {
        text.push_str(&format!(
            "[upstream.deep.tool.{tool}]\noperation = \"{tool}\"\nclass = \"write\"\nconsent = {{ waived_by = \"Grace Hopper\", because = \"synthetic\", until = \"2099-12-31\" }}\napproval.mutations = {{ by = \"Grace Hopper\", because = \"synthetic\", until = \"2099-12-31\", for = [\"everyone\"] }}\n"
        ));
    }
    House::new()
        .with_file("deep.yaml", document())
        .with_file(
            "policy/all.cedar",
            "@id(\"all\")\npermit (principal, action, resource);\n",
        )
        .with_file("tollhouse.toml", text)
}

async fn json_of(house: &House, words: &[&str], code: i32) -> Value {
    run(house, words).await.ended(code).json()
}

fn tool<'t>(list: &'t Value, name: &str) -> &'t Value {
    let list = list.get("tools").unwrap_or(list);
    let tools = list.as_array().unwrap_or_else(|| panic!("{list}"));
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {list}"))
}

const SMALL: &str = "input_bytes_max = \"2KiB\"\noutput_bytes_max = \"512B\"";

#[tokio::test]
async fn a_budget_of_the_upstream_holds_for_each_tool_alone_and_in_every_command() {
    let whole = house("", "", &["first"]);
    let alone = house("", SMALL, &["first"]);
    let beside = house("", SMALL, &["first", "second"]);
    let listed = async |house: &House| {
        tool(
            &json_of(house, &["tools", "--as", "ada", "--json"], 0).await,
            "deep_first",
        )
        .clone()
    };
    let length = |tool: &Value| {
        (
            tool["inputSchema"].to_string().len(),
            tool["outputSchema"].to_string().len(),
        )
    };
    let (large, small) = (listed(&whole).await, listed(&alone).await);
    assert!(
        length(&large).0 > 7_000 && length(&large).1 > 1_500,
        "{:?}",
        length(&large)
    );
    assert!(
        length(&small).0 <= 2_048 && length(&small).1 <= 1_024,
        "{:?}",
        length(&small)
    );
    // A neighbour moves neither the definition nor the pin.
    assert_eq!(listed(&beside).await, small);
    let pin = async |house: &House| {
        tool(&json_of(house, &["tools", "--json"], 0).await, "deep_first")["pin"].clone()
    };
    assert_eq!(pin(&alone).await, pin(&beside).await);
    assert_ne!(pin(&alone).await, pin(&whole).await);
    // The report measures what is listed.
    let words = ["review", "deep.yaml", "--config", "tollhouse.toml", "--json"];
    let report = json_of(&alone, &words, 0).await;
    let row = tool(&report, "deep_first");
    let both = length(&small).0 + length(&small).1;
    assert_eq!(row["schema_bytes"], json!(both), "{row}");
}

#[tokio::test]
async fn a_list_that_is_too_long_is_told_with_what_would_make_it_fit() {
    let words = ["review", "deep.yaml", "--config", "tollhouse.toml", "--json"];
    let reasons = async |limits: &str, budgets: &str| {
        let house = house(limits, budgets, &["first", "second"]);
        let report = json_of(&house, &words, 0).await;
        assert_eq!(
            report["budget"]["fits"], report["verdict"]["ready"],
            "{}",
            report["verdict"]
        );
        (
            report["budget"]["bytes"].as_u64().unwrap(),
            report["verdict"]["reasons"].to_string(),
        )
    };
    let (bytes, none) = reasons("", "").await;
    assert_eq!(none, "[]");
    // At the length of the list it fits, and one byte below it does not.
    let limit = |bytes: u64| format!("[limits]\ntools_list_bytes_max = {bytes}\n");
    assert_eq!(reasons(&limit(bytes), "").await.1, "[]");
    let long = reasons(&limit(bytes - 1), "").await.1;
    assert!(long.contains("`limits.tools_list_bytes_max`"), "{long}");
    assert!(
        long.contains("`output_bytes_max = 1024` of the upstream would make it fit"),
        "{long}"
    );
    assert_eq!(
        reasons(&limit(bytes - 1), "output_bytes_max = 1024").await.1,
        "[]"
    );
    let never = reasons(&limit(1_024), "").await.1;
    assert!(never.contains("offer fewer tools"), "{never}");

    // Whoever only checks is told the same.
    let warnings = async |limits: &str, budgets: &str| {
        let house = house(limits, budgets, &["first", "second"]);
        let outcome = json_of(&house, &["check", "--offline", "--json"], 0).await;
        outcome["warnings"].clone()
    };
    assert_eq!(warnings(&limit(bytes), "").await, json!([]));
    let told = warnings(&limit(bytes - 1), "").await;
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told[0]["key"], "upstream.deep");
    assert!(long.contains(told[0]["text"].as_str().unwrap()), "{told} {long}");
    assert_eq!(
        warnings(&limit(bytes - 1), "output_bytes_max = 1024").await,
        json!([])
    );
}
