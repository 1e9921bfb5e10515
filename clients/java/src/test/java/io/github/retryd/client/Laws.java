package io.github.retryd.client;

import com.google.protobuf.Duration;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.github.retryd.v1.AcquireRetriesResponse;
import io.github.retryd.v1.Decision;
import io.github.retryd.v1.DelaySource;
import io.github.retryd.v1.FailureClass;
import io.github.retryd.v1.Reason;
import io.github.retryd.v1.Step;
import io.github.retryd.v1.UsageResult;
import io.github.retryd.v1.Verdict;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** What holds for every answer (tests/vectors/README.md, "Always"), and what a refusal carries. */
final class Laws {
  private final List<String> broken = new ArrayList<>();

  static List<String> decision(Decision got, boolean explain, boolean shadow, String revision) {
    Laws laws = new Laws();
    boolean retries = got.getVerdict() == Verdict.VERDICT_RETRY;
    Duration delay = got.getDelay();
    boolean waits = 0 <= delay.getSeconds() && delay.getNanos() % 1_000_000 == 0
        && 0 < delay.getSeconds() + delay.getNanos();
    List<Step> steps = got.getStepsList();
    long objections = steps.stream().filter(Step::getObjected).count();
    laws.hold("the verdict is one of the two", retries || got.getVerdict() == Verdict.VERDICT_DO_NOT_RETRY);
    laws.hold("the reason is told", got.getReason() != Reason.REASON_UNSPECIFIED);
    laws.hold("RETRY and RETRYABLE come together", retries == (got.getReason() == Reason.REASON_RETRYABLE));
    laws.hold("RETRY has a delay of whole milliseconds, at least one", !retries || waits);
    laws.hold("only RETRY has a delay", retries == got.hasDelay());
    laws.hold("only RETRY has a source of the delay",
        retries == (got.getDelaySource() != DelaySource.DELAY_SOURCE_UNSPECIFIED));
    laws.hold("the class is told", got.getFailureClass() != FailureClass.FAILURE_CLASS_UNSPECIFIED);
    laws.hold("the policy is told", !got.getPolicy().isEmpty());
    laws.hold("the revision is the file's", got.getPolicyRevision().equals(revision));
    laws.hold("shadow where that is expected", got.getShadow() == shadow);
    laws.hold("nothing is degraded", !got.getDegraded());
    laws.hold("detail comes with explain", explain != got.getDetail().isEmpty());
    laws.hold("steps come with explain", explain != steps.isEmpty());
    laws.hold("every step saw something", steps.stream().noneMatch(step -> step.getSaw().isEmpty()));
    if (!steps.isEmpty()) {
      Step last = steps.get(steps.size() - 1);
      laws.hold("the last step is the reason", last.getRule() == got.getReason());
      laws.hold("only the last step of a refusal objected",
          last.getObjected() != retries && objections == (retries ? 0 : 1));
    }
    return laws.broken;
  }

  static List<String> acquire(AcquireRetriesResponse got, int wanted, boolean shadow) {
    Laws laws = new Laws();
    java.time.Duration valid = Durations.toJava(got.getValidFor());
    laws.hold("no more is granted than was wanted", Integer.compareUnsigned(got.getGranted(), wanted) <= 0);
    laws.hold("a lease comes with retries", (got.getGranted() == 0) == got.getLease().isEmpty());
    laws.hold("valid for 1 s to 10 s", 0 <= valid.compareTo(java.time.Duration.ofSeconds(1))
        && valid.compareTo(java.time.Duration.ofSeconds(10)) <= 0);
    laws.hold("shadow where that is expected", got.getShadow() == shadow);
    return laws.broken;
  }

  static List<String> release(int released, int unused) {
    Laws laws = new Laws();
    laws.hold("no more is released than was unused", Integer.compareUnsigned(released, unused) <= 0);
    return laws.broken;
  }

  static List<String> report(List<UsageResult> results, boolean isExpected) {
    Laws laws = new Laws();
    laws.hold("an entry is refused only where that is expected",
        isExpected || results.stream().noneMatch(UsageResult::hasRefusal));
    return laws.broken;
  }

  /** Everything in which {@code got} differs from the refusal that {@code error} names. */
  static List<String> refusal(StatusRuntimeException got, JsonObject error) {
    Laws laws = new Laws();
    Status status = got.getStatus();
    ErrorInfo info = ErrorDetails.find(got.getTrailers(), ErrorInfo.class).orElse(ErrorInfo.getDefaultInstance());
    List<BadRequest.FieldViolation> violations = ErrorDetails.find(got.getTrailers(), BadRequest.class)
        .orElse(BadRequest.getDefaultInstance()).getFieldViolationsList();
    laws.same("code", status.getCode().name(), error.get("code").getAsString());
    laws.same("domain", info.getDomain(), "retryd");
    laws.same("reason", info.getReason(), error.get("reason").getAsString());
    laws.same("violations",
        violations.stream().map(BadRequest.FieldViolation::getField).sorted().toList(),
        Vectors.objects(error.get("violations")).map(JsonElement::getAsString).sorted().toList());
    laws.hold("no control character came back", Stream.concat(Stream.of(String.valueOf(status.getDescription())),
        violations.stream().map(BadRequest.FieldViolation::getDescription))
        .flatMapToInt(String::chars).noneMatch(Character::isISOControl));
    return laws.broken;
  }

  private void same(String what, Object got, Object wanted) {
    hold(what + " " + got + ", expected " + wanted, got.equals(wanted));
  }

  private void hold(String law, boolean holds) {
    if (!holds) {
      broken.add("broken: " + law);
    }
  }
}
