//! A tonic client whose failed calls are brought to retryd.
use std::time::Duration;

use retryd_client::{
    BoxError, Client, Operation, Settings,
    pb::{GetBudgetRequest, budget_service_client::BudgetServiceClient},
};
use tonic::{Request, transport::Channel};
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = Client::new(Settings {
        operations: [("retryd.v1.BudgetService/GetBudget".into(), Operation::declared())].into(),
        ..Settings::new("dns:///127.0.0.1:50051", "shop-1")
    })?;

    // Any generated client goes around it; this one so that the example runs with nothing else.
    let channel = Channel::from_static("http://127.0.0.1:50051").connect_lazy();
    let service = ServiceBuilder::new().layer(client.layer()).service(channel);
    let mut budgets = BudgetServiceClient::new(service);

    let names = GetBudgetRequest { tenant: "shop-1".into(), operation: "any".into() };
    let mut request = Request::new(names);
    request.set_timeout(Duration::from_secs(2));
    println!("{:?}", budgets.get_budget(request).await?.into_inner());

    client.close().await;
    Ok(())
}
