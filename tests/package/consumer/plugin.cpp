#include "greeting.h"
#include "support/component.h"

TW_PLUGIN("consumer", "1.0")

static const tilewright::Register<Greeting> entry{
    "consumer.hello", "registered by a plug-in", {"hello from the plug-in"}};
