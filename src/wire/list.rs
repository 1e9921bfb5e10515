//! Pages of balances between wire and domain.
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use prost::Message as _;

use super::pb;
use super::refusal::{Refusal, Violations};
use crate::budget::Listed;

/// Balances on one page.
pub const PAGE_SIZE_MAX: u32 = 1_000;
const PAGE_SIZE_DEFAULT: u32 = 100;

/// Which page is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many balances.
    pub size: usize,
    /// The last one of the page before.
    pub after: Option<Listed>,
}

/// Parses a request for a page.
///
/// # Errors
///
/// Names every wrong field.
pub fn page(request: &pb::ListBudgetsRequest) -> Result<Page, Refusal> {
    let mut violations = Violations::default();
    let size = match request.page_size {
        0 => Ok(PAGE_SIZE_DEFAULT),
        size @ 1..=PAGE_SIZE_MAX => Ok(size),
        _ => Err("more than 1000"),
    };
    let size = violations.check("page_size", size);
    let after = violations.check("page_token", after(&request.page_token));
    let page = || Some(Page { size: usize::try_from(size?).ok()?, after: after? });
    violations.or(page())
}

/// Writes a page. If it is full, another one may follow.
pub fn write(page: &Page, rows: Vec<Listed>) -> pb::ListBudgetsResponse {
    let is_full = rows.len() == page.size;
    let budgets: Vec<pb::TenantBudget> = rows.into_iter().map(pb::TenantBudget::from).collect();
    let last = budgets.last().filter(|_| is_full);
    let next_page_token = last.map_or_else(String::new, token);
    pb::ListBudgetsResponse { budgets, next_page_token }
}

/// A token is the last row of a page, so it stays good whatever happens to the balances.
fn token(last: &pb::TenantBudget) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(last.encode_to_vec())
}

fn after(token: &str) -> Result<Option<Listed>, &'static str> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| "not a token of this service")?;
    let row = pb::TenantBudget::decode(&*bytes).map_err(|_| "not a token of this service")?;
    let state = row.budget.ok_or("not a token of this service")?;
    Ok(Some(Listed {
        available: state.retries_available,
        budget: state.budget.into(),
        tenant: row.tenant.into(),
        operation: row.operation.into(),
        capacity: state.retries_capacity,
    }))
}

impl From<Listed> for pb::TenantBudget {
    fn from(row: Listed) -> pb::TenantBudget {
        pb::TenantBudget {
            tenant: row.tenant.into(),
            operation: row.operation.into(),
            budget: Some(pb::BudgetState {
                budget: row.budget.into(),
                retries_available: row.available,
                retries_capacity: row.capacity,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Listed {
        let (budget, tenant) = ("per-tenant".into(), "shop".into());
        Listed { available: 3, budget, tenant, operation: "".into(), capacity: 10 }
    }

    #[test]
    fn a_token_leads_back_to_its_row() {
        assert_eq!(after(&token(&row().into())), Ok(Some(row())));
        assert_eq!(after(""), Ok(None));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in ["%", "a", "AAAA", "CgR0ZXN0", " "] {
            assert!(after(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_full_page_has_a_next_one() {
        let page = Page { size: 2, after: None };
        assert_eq!(write(&page, vec![row()]).next_page_token, "");
        let full = write(&page, vec![row(), Listed { available: 4, ..row() }]);
        let last = after(&full.next_page_token).unwrap().unwrap();
        assert_eq!(last.available, 4);
    }
}
