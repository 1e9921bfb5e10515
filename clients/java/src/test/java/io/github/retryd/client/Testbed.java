package io.github.retryd.client;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** What the tests run against: one testbed for all of them, which ends with this process. */
final class Testbed {
  static final Path REPOSITORY = Path.of("../..").toAbsolutePath().normalize();

  private static final HttpClient http = HttpClient.newHttpClient();
  private static final JsonObject addresses = start();

  /** The address of what stands in retryd's place: see clients/testbed/README.md. */
  static String retryd(String name) {
    return addresses.getAsJsonObject("retryd").get(name).getAsString();
  }

  /** The address of a gRPC service. */
  static String service(String name) {
    return addresses.getAsJsonObject("grpc").get(name).getAsString();
  }

  /** What was seen of a run. */
  static JsonObject play(String name) {
    return call(HttpRequest.newBuilder(control("/plays/" + name)).build());
  }

  /** Starts a real retryd with the text of a policy file, and tells its address. */
  static String startRetryd(String policy) {
    HttpRequest request = HttpRequest.newBuilder(control("/retryds"))
        .POST(HttpRequest.BodyPublishers.ofString(policy)).build();
    return call(request).get("address").getAsString();
  }

  /** A file of the scenarios. */
  static JsonObject scenarios(String file) {
    return json(REPOSITORY.resolve("clients/scenarios").resolve(file));
  }

  static JsonObject json(Path file) {
    try {
      return JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Leniently: 'single quotes' will do. */
  static JsonObject parsed(String json) {
    return JsonParser.parseString(json).getAsJsonObject();
  }

  private static JsonObject start() {
    String python = setting("TESTBED_PYTHON", "target/clients/venv/bin/python");
    String retryd = setting("RETRYD_BIN", "target/debug/retryd");
    ProcessBuilder command = new ProcessBuilder(python, "-m", "testbed", "--retryd", retryd);
    command.environment().put("PYTHONPATH", REPOSITORY.resolve("clients").toString());
    command.redirectError(ProcessBuilder.Redirect.INHERIT);
    try {
      // Its standard input is open as long as this process lives.
      BufferedReader said = command.start().inputReader();
      String line = said.readLine();
      if (line == null) {
        throw new IllegalStateException("the testbed did not start: " + command.command());
      }
      return JsonParser.parseString(line).getAsJsonObject();
    } catch (IOException error) {
      throw new IllegalStateException(
          "the testbed cannot be started: run clients/run java, or set TESTBED_PYTHON and RETRYD_BIN", error);
    }
  }

  private static String setting(String variable, String inRepository) {
    return Optional.ofNullable(System.getenv(variable)).orElse(REPOSITORY.resolve(inRepository).toString());
  }

  private static URI control(String path) {
    return URI.create(addresses.get("control").getAsString() + path);
  }

  private static JsonObject call(HttpRequest request) {
    try {
      HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
      if (response.statusCode() != 200) {
        throw new IllegalStateException("the testbed says " + response.statusCode() + ": " + response.body());
      }
      return JsonParser.parseString(response.body()).getAsJsonObject();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  private Testbed() {}
}
