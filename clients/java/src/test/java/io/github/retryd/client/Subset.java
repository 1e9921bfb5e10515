package io.github.retryd.client;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.ArrayList;
import java.util.List;

/** Holds an answer against the part of it that is expected (tests/vectors/README.md, "Answer"). */
final class Subset {
  /** Everything that {@code expected} names and {@code got} does not hold. */
  static List<String> differences(JsonObject expected, JsonObject got) {
    List<String> differences = new ArrayList<>();
    expected.asMap().forEach((key, wanted) -> compare(key, wanted, got.get(key), differences));
    return differences;
  }

  private static void compare(String path, JsonElement wanted, JsonElement got, List<String> differences) {
    if (wanted instanceof JsonObject fields && got instanceof JsonObject gotFields) {
      fields.asMap().forEach((key, value) -> compare(path + "." + key, value, gotFields.get(key), differences));
    } else if (wanted instanceof JsonArray list && got instanceof JsonArray gotList && list.size() == gotList.size()) {
      for (int place = 0; place < list.size(); place++) {
        compare(path + "[" + place + "]", list.get(place), gotList.get(place), differences);
      }
    } else if (got == null ? !isDefault(wanted) : !wanted.equals(got)) {
      differences.add(path + ": " + got + ", expected " + wanted);
    }
  }

  /** Proto-JSON leaves out what has its default value. */
  private static boolean isDefault(JsonElement value) {
    if (value instanceof JsonPrimitive primitive) {
      return primitive.isBoolean() ? !primitive.getAsBoolean()
          : primitive.isNumber() ? primitive.getAsDouble() == 0
          : primitive.getAsString().isEmpty();
    }
    return value.isJsonNull();
  }

  private Subset() {}
}
