package io.github.retryd.client;

import com.google.common.collect.Lists;
import io.github.retryd.v1.Refusal;
import io.github.retryd.v1.ReportUsageRequest;
import io.github.retryd.v1.ReportUsageResponse;
import io.github.retryd.v1.TenantUsage;
import io.grpc.Status;
import java.util.List;
import java.util.UUID;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Reports the usage that no question took along. */
final class Reports {
  private static final Logger log = Logger.getLogger(Reports.class.getName());

  /** The most that retryd takes in one report. */
  private static final int ENTRIES_MAX = 1000;

  private final Budgets budgets;
  private final UsageLedger usage;

  Reports(Budgets budgets, UsageLedger usage) {
    this.budgets = budgets;
    this.usage = usage;
  }

  /** Sends all that has gathered. */
  void send() {
    Lists.partition(usage.takeAll(), ENTRIES_MAX).forEach(this::send);
  }

  private void send(List<UsageLedger.Taken> taken) {
    ReportUsageRequest.Builder report = ReportUsageRequest.newBuilder().setReportId(UUID.randomUUID().toString());
    for (UsageLedger.Taken entry : taken) {
      report.addUsage(TenantUsage.newBuilder()
          .setTenant(entry.name().tenant())
          .setOperation(entry.name().operation())
          .setUsage(entry.usage()));
    }
    budgets.report(report.build(), response -> settle(taken, response), error -> {
      // After any other end nobody knows whether it was counted: it is dropped.
      if (ErrorDetails.isOfRetryd(Status.trailersFromThrowable(error))) {
        taken.forEach(usage::putBack);
      }
    });
  }

  /** An entry that is refused for a while is told again; one that is wrong would be refused for ever. */
  private void settle(List<UsageLedger.Taken> taken, ReportUsageResponse response) {
    for (int place = 0; place < Math.min(taken.size(), response.getResultsCount()); place++) {
      if (!response.getResults(place).hasRefusal()) {
        continue;
      }
      Refusal refusal = response.getResults(place).getRefusal();
      if (refusal.getGrpcCode() == Status.Code.UNAVAILABLE.value()) {
        usage.putBack(taken.get(place));
      } else {
        log.log(Level.WARNING, "retryd refuses the usage of {0}: {1}",
            new Object[] {taken.get(place).name(), refusal});
      }
    }
  }
}
