package io.github.retryd.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** One file of tests/vectors: a policy, and the cases that are decided by it. */
record Vectors(String name, String policy, JsonObject base, List<Play> plays) {
  private static final Set<String> FILE_KEYS = Set.of("about", "policy", "base", "cases");
  private static final Set<String> CASE_KEYS = Set.of("name", "source", "needs", "alone", "clock", "draw", "operation",
      "steps", "before", "context", "contexts", "expect", "error");
  private static final Set<String> STEP_KEYS = Set.of("ask", "report", "reports", "acquire", "release", "budget",
      "list", "advance", "reload", "repeat", "granted", "as", "expect", "error");

  /** One sequence of steps, under a tenant of its own. */
  record Play(String caseName, boolean alone, JsonObject names, List<JsonObject> steps) {}

  /** Every file. */
  static List<Vectors> load() {
    try (Stream<Path> files = Files.list(Testbed.REPOSITORY.resolve("tests/vectors"))) {
      return files.filter(file -> file.toString().endsWith(".json")).sorted().map(Vectors::read).toList();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** What every decision tells as its policy's revision. */
  String revision() {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(policy.getBytes(UTF_8));
      return HexFormat.of().formatHex(digest, 0, 6);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error);
    }
  }

  private static Vectors read(Path path) {
    JsonObject file = Testbed.json(path);
    check(file, FILE_KEYS, path);
    String name = path.getFileName().toString().replace(".json", "");
    String policy = objects(file.get("policy")).map(JsonElement::getAsString)
        .collect(Collectors.joining("\n", "", "\n"));
    JsonObject base = file.has("base") ? file.getAsJsonObject("base") : new JsonObject();
    JsonArray cases = file.getAsJsonArray("cases");
    if (cases.isEmpty()) {
      throw new IllegalArgumentException(path + ": no cases");
    }
    List<Play> plays = new ArrayList<>();
    for (int place = 0; place < cases.size(); place++) {
      JsonObject one = cases.get(place).getAsJsonObject();
      check(one, CASE_KEYS, path);
      if (!one.has("needs") || one.getAsJsonArray("needs").isEmpty()) {
        plays.addAll(plays(name + "-" + place, one, path));
      }
    }
    return new Vectors(name, policy, base, plays);
  }

  /** The steps as they are; or the history and one of the contexts, for each of them. */
  private static List<Play> plays(String tenant, JsonObject one, Path path) {
    List<List<JsonObject>> sequences = new ArrayList<>();
    if (one.has("steps")) {
      sequences.add(steps(one.get("steps"), path));
    } else {
      Stream.concat(objects(one.get("context")), objects(one.get("contexts"))).forEach(context -> {
        JsonObject question = new JsonObject();
        question.add("ask", context);
        Stream.of("expect", "error").filter(one::has).forEach(key -> question.add(key, one.get(key)));
        List<JsonObject> steps = new ArrayList<>(steps(one.get("before"), path));
        steps.add(question);
        sequences.add(steps);
      });
    }
    List<Play> plays = new ArrayList<>();
    for (List<JsonObject> steps : sequences) {
      JsonObject names = new JsonObject();
      names.addProperty("tenant", tenant + "-" + plays.size());
      names.addProperty("operation", one.has("operation") ? one.get("operation").getAsString() : "op");
      plays.add(new Play(one.get("name").getAsString(), one.has("alone"), names, steps));
    }
    return plays;
  }

  private static List<JsonObject> steps(JsonElement list, Path path) {
    List<JsonObject> steps = objects(list).map(JsonElement::getAsJsonObject).toList();
    steps.forEach(step -> check(step, STEP_KEYS, path));
    return steps;
  }

  /** The elements of a list, the one value that stands for a list of one, or nothing. */
  static Stream<JsonElement> objects(JsonElement value) {
    if (value == null) {
      return Stream.empty();
    }
    return value instanceof JsonArray list ? StreamSupport.stream(list.spliterator(), false) : Stream.of(value);
  }

  private static void check(JsonObject json, Set<String> keys, Path path) {
    if (!keys.containsAll(json.keySet())) {
      throw new IllegalArgumentException(path + ": unknown key in " + json.keySet());
    }
  }
}
