//! What is kept of a caller between calls changes no decision.

use model::{Caller, ClientId, Role, TenantId};
use policy::{DeniedWhy, Policy};

use crate::world::{file, fleet, refund};

#[test]
fn what_is_remembered_of_a_caller_ends_with_the_next_change_of_what_rules_can_read() {
    let text = r#"
        permit (principal, action, resource) when { principal.roles.contains("clerk") && principal.tenant == "north" };
        @id("no-suspended-callers")
        forbid (principal, action, resource) when { principal.roles.contains("suspended") };
        @id("no-robots")
        forbid (principal, action, resource) when { principal has client && principal.client == "robot" };
    "#;
    let policy = Policy::load(&[file("a.cedar", text)], &fleet()).unwrap();
    let says = |change: &dyn Fn(&mut Caller)| {
        let mut asked = refund();
        asked.caller.roles = [Role::parse("clerk").unwrap()].into();
        asked.caller.tenant = Some(TenantId::parse("north").unwrap());
        asked.caller.client = None;
        change(&mut asked.caller);
        match asked.of(&policy).map(|_| ()).map_err(|denied| denied.why) {
            Ok(()) => "yes",
            Err(DeniedWhy::Forbidden(_)) => "forbidden",
            Err(DeniedWhy::NothingPermits) => "nothing",
            Err(DeniedWhy::RuleFailed(_)) => "failed",
            Err(other) => panic!("{other:?}"),
        }
    };
    for _ in 0..2 {
        assert_eq!(says(&|_| {}), "yes");
        let suspend = |caller: &mut Caller| {
            caller.roles.insert(Role::parse("suspended").unwrap());
        };
        assert_eq!(says(&suspend), "forbidden");
        assert_eq!(says(&|caller| caller.roles.clear()), "nothing");
        assert_eq!(says(&|caller| caller.tenant = None), "failed");
        let elsewhere = |caller: &mut Caller| caller.tenant = Some(TenantId::parse("south").unwrap());
        assert_eq!(says(&elsewhere), "nothing");
        let robot = |caller: &mut Caller| caller.client = Some(ClientId::parse("robot").unwrap());
        assert_eq!(says(&robot), "forbidden");
    }
}
