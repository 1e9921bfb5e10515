package io.github.retryd.client;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The local throttle of each service that is called. */
final class Throttles {
  /** Further services share one. */
  private static final int THROTTLES_MAX = 1000;

  private final Map<String, Throttle> own = new ConcurrentHashMap<>();
  private final Throttle shared = new Throttle();

  Throttle of(String authority) {
    Throttle known = own.get(authority);
    if (known != null) {
      return known;
    }
    return own.size() < THROTTLES_MAX ? own.computeIfAbsent(authority, name -> new Throttle()) : shared;
  }
}
