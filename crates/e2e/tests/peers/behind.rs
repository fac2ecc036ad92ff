//! Servers on the official SDKs behind the gate, by each transport over HTTP, called by clients of both eras.

use e2e::behind::Way;
use e2e::client::Mcp;
use e2e::driver::Sdk;
use e2e::house::{House, text};
use serde_json::json;

const LEGACY: &str = "2025-11-25";

#[tokio::test]
async fn sse_02_sse_03_sse_05_servers_on_the_sdks_are_called_through_the_gate_by_every_transport() {
    for sdk in Sdk::ALL {
        for way in [Way::Http, Way::Modern, Way::Sse] {
            if !sdk.serves(way) {
                continue;
            }
            let Some(server) = sdk.serve(way).await else {
                continue;
            };
            let config = format!(
                "listen = \"127.0.0.1:0\"\n[identity]\napi_keys = true\n[policy]\nfolder = \"policy\"\n[caller.ada]\nsubject = \"ada\"\n\
                 [upstream.far]\nurl = \"{}\"\nnetwork = {{ allow = [\"127.0.0.0/8\"] }}\n\
                 [upstream.far.tool.echo]\nclass = \"read\"\n[upstream.far.tool.count]\nclass = \"read\"\n",
                server.url
            );
            let house = House::new()
                .with_file("tollhouse.toml", config)
                .with_file("policy/all.cedar", "permit (principal, action, resource);\n");
            let approved = house.run(["pins", "approve", "far", "--all"]).await;
            let said = text(&approved.stderr);
            assert!(
                approved.status.success(),
                "{sdk:?} {way:?}: {said}\n{}",
                server.log()
            );
            let key = house.key("ada").await;
            let gate = house.serve().await;
            for client in [
                Mcp::modern(&gate.url, &key),
                Mcp::legacy(&gate.url, &key, LEGACY).await,
            ] {
                assert_eq!(client.tools().await, ["far_count", "far_echo"], "{sdk:?} {way:?}");
                let echoed = client.call("far_echo", json!({"text":"häll\u{f6}"})).await;
                assert_eq!(echoed["content"][0]["text"], "hällö", "{sdk:?} {way:?}: {echoed}");
                let counted = client.call("far_count", json!({"to":3})).await;
                assert_eq!(
                    counted["content"][0]["text"], "counted to 3",
                    "{sdk:?} {way:?}: {counted}"
                );
            }
            let (code, log) = gate.close().await;
            assert_eq!(code, Some(0), "{log}");
        }
    }
}
